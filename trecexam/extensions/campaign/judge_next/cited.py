"""The citations that a person should label next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from converters.records import Item
from converters.support_labels import LABELS
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.campaign.judge_next.search import SuggestedJudgment
from trecexam.grades.cited import responses_by_query
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.kinds.support import statements_of
from trecexam.results.text import plural


class _CitedPair(NamedTuple):
    """A sentence with a cited passage; of passages with the same text, the first.

    Attributes:
        text: the passage's text, None if missing.
        machine: the grader's rating, or a code of `trecexam.grades.sheets`.
        responses: (run, query_id) of the responses that have both.
    """

    item: Item
    doc_id: str
    text: str | None
    machine: int
    responses: tuple[tuple[str, str], ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """(query_id, doc_id, item_id), as in overrides.tsv."""
        return self.item.query_id, self.doc_id, self.item.item_id


def unlabelled_citations(
    track: GradedTrack, query_ids: Collection[str] = ()
) -> tuple[list[SuggestedJudgment], tuple[str, ...]]:
    """Return the citations that a person should label, most useful first, and notes.

    Citations without a label of the grader come first; among these, and then among the others, the first of
    each response before the second of any, and of each query before the next of any. Within that, citations
    that more runs share come first.

    Args:
        query_ids: only these queries; none for all.

    Raises:
        TrecexamError: there is no response to a query.
    """
    answered_ids = {response.query_id for of_run in track.responses.values() for response in of_run}
    for query_id in query_ids:
        if query_id not in answered_ids:
            hint = did_you_mean(query_id, answered_ids, before="; ")
            raise TrecexamError(f"no response to query '{query_id}'{hint}", path=track.folder.root)
    pairs = [pair for pair in _cited_pairs(track) if not query_ids or pair.item.query_id in query_ids]
    unlabelled = [pair for pair in pairs if pair.key not in track.overrides.ratings]
    planned = _in_turns(pair for pair in unlabelled if pair.text is not None)
    n_labelled, no_text = len(pairs) - len(unlabelled), len(unlabelled) - len(planned)
    ungraded = sum(pair.machine < 0 for pair in planned)
    rows = [
        SuggestedJudgment(
            pair.item.query_id,
            pair.doc_id,
            len(pair.responses),
            LABELS[pair.machine] if pair.machine >= 0 else None,
            track.query_texts.get(pair.item.query_id, ""),
            pair.text or "",
            pair.item,
            (rank,),
        )
        for rank, pair in enumerate(planned)
    ]
    notes = [
        f"{plural(n_labelled, 'citation')} {'is' if n_labelled == 1 else 'are'} labelled by people, "
        f"{len(planned):,} {'is' if len(planned) == 1 else 'are'} not, "
        f"{ungraded:,} of these {'has' if ungraded == 1 else 'have'} no label from the grader"
    ]
    notes += [f"left out {plural(no_text, 'citation')} of passages without a text"] if no_text else []
    return rows, tuple(notes)


def _cited_pairs(track: GradedTrack) -> Iterator[_CitedPair]:
    """Yield all citations; each pair of sentence and passage occurs once per query."""
    citations = track.config.grader.citations
    for query_id, responses_of_query in responses_by_query(track, track.responses, track.bank.query_ids):
        sheet = track.sheets[query_id]
        flat = sheet.flat()
        pairs: dict[tuple[int, str], tuple[str, int, dict[tuple[str, str], None]]] = {}
        for run, response in responses_of_query:
            for statement in statements_of(run, response, citations):
                column = sheet.column_of[statement.item_id] if statement.doc_ids else -1
                for doc_id in statement.doc_ids:
                    cell_index = sheet.place_of(doc_id, statement.item_id)
                    alike = column, sheet.text_of(doc_id) or f"\0{doc_id}"
                    of_pair = pairs.setdefault(alike, (doc_id, int(flat[cell_index]), {}))
                    of_pair[2][run, query_id] = None
        for (column, _), (doc_id, machine, responses) in pairs.items():
            yield _CitedPair(sheet.items[column], doc_id, track.texts.get(doc_id), machine, tuple(responses))


def _in_turns(pairs: Iterable[_CitedPair]) -> list[_CitedPair]:
    """Return the citations in the order of `unlabelled_citations`."""
    planned = sorted(pairs, key=lambda pair: (pair.machine >= 0, -len(pair.responses), pair.key))
    of_response: Counter[tuple[bool, str, str]] = Counter()
    rounds: list[tuple[bool, int]] = []
    for pair in planned:
        graded = pair.machine >= 0
        responses = {(graded, *response) for response in pair.responses}
        rounds.append((graded, min(of_response[response] for response in responses)))
        of_response.update(responses)
    of_query: Counter[tuple[bool, int, str]] = Counter()
    turns: dict[int, tuple[bool, int, int]] = {}
    for index in sorted(range(len(planned)), key=rounds.__getitem__):
        turn = *rounds[index], planned[index].item.query_id
        turns[index] = *rounds[index], of_query[turn]
        of_query[turn] += 1
    return [planned[index] for index in sorted(turns, key=turns.__getitem__)]
