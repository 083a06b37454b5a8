"""The citations that a person should label next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from converters.support_labels import LABELS
from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.campaign.judge_next.suggested import NextJudgments, SuggestedJudgment, how_to_judge
from trecexam.line.cited import responses_by_query
from trecexam.line.kinds.support import statements_of
from trecexam.scores.support import WEIGHTS
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from converters.records import Item
    from trecexam.line.assessment import Assessment
    from trecexam.line.stored_grades import StoredGrades


class CitedPair(NamedTuple):
    """An item with a passage; of passages with the same text, the first.

    Attributes:
        passage: the text, None if missing.
        machine: the grader's rating, or a code of `trecexam.line.sheets`.
        responses: (run, query_id) of the responses that have both.
    """

    item: Item
    doc_id: str
    passage: str | None
    machine: int
    responses: tuple[tuple[str, str], ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """(query_id, doc_id, item_id), as in overrides.tsv."""
        return self.item.query_id, self.doc_id, self.item.item_id


@dataclass(frozen=True)
class PlannedLabel:
    """A citation (sentence and passage) for a person to label.

    Attributes:
        runs: how many runs have a response with both.
        chances: the grader's probabilities of no, partial and full support; None if missing.
        p_change: the probability that a person says another label than the grader; None as above, and where
            the grader has none.
        expected_change: by how much the citation's weight, 0..1, is expected to change; None likewise.
    """

    pair: CitedPair
    runs: int
    chances: tuple[float, ...] | None = None
    p_change: float | None = None
    expected_change: float | None = None


def next_citations(
    track: Assessment, query_ids: Collection[str] = (), top: int | None = None
) -> NextJudgments:
    """The citations that a person should label, most useful first.

    Those without a label of the grader go first; among these, and then among the others, the first of each
    response before the second of any, and of each query before the next of any. What decides within that is
    how many runs share it, then how much its weight is expected to change by the grader's probabilities.

    Args:
        query_ids: only these queries; none for all.
        top: so many at the most; None for all.

    Raises:
        TrecexamError: there is no response to a query.
    """
    answered_ids = {response.query_id for of_run in track.responses.values() for response in of_run}
    for query_id in query_ids:
        if query_id not in answered_ids:
            hint = did_you_mean(query_id, answered_ids, before="; ")
            raise TrecexamError(f"no response to query '{query_id}'{hint}", path=track.folder.root)
    pairs = [pair for pair in cited_pairs(track) if not query_ids or pair.item.query_id in query_ids]
    judged = [pair for pair in pairs if pair.key in track.overrides.ratings]
    planned = labels_to_make(track, [pair for pair in pairs if pair.key not in track.overrides.ratings])
    no_text = len(pairs) - len(judged) - len(planned)
    ungraded = sum(row.pair.machine < 0 for row in planned)
    rows = tuple(_suggested(track, row) for row in planned[:top])
    notes = [
        f"{plural(len(judged), 'citation')} {'is' if len(judged) == 1 else 'are'} labelled by people, "
        f"{len(planned):,} {'is' if len(planned) == 1 else 'are'} not, "
        f"{ungraded:,} of these {'has' if ungraded == 1 else 'have'} no label from the grader"
        + (f"; these are the first {len(rows):,}" if len(rows) < len(planned) else "")
    ]
    notes += [f"left out {plural(no_text, 'citation')} of passages without a text"] if no_text else []
    notes += [how_to_judge(track, rows[0], "full|partial|no")] if rows else []
    return NextJudgments("citation", len(planned), len(judged), ungraded, rows, tuple(notes), no_text=no_text)


def _suggested(track: Assessment, row: PlannedLabel) -> SuggestedJudgment:
    query_id, doc_id, _ = row.pair.key
    return SuggestedJudgment(
        query_id,
        doc_id,
        row.pair.item,
        LABELS[row.pair.machine] if row.pair.machine >= 0 else None,
        row.runs,
        row.chances or (),
        row.expected_change,
        row.p_change,
        track.query_texts.get(query_id, ""),
        row.pair.passage or "",
    )


def cited_pairs(track: Assessment) -> Iterator[CitedPair]:
    """All citations that can be labelled; each pair of sentence and passage occurs once per query."""
    citations = track.config.grader.citations
    for query_id, responses_of_query in responses_by_query(track, track.responses, track.bank.query_ids):
        sheet = track.sheets[query_id]
        flat = sheet.flat()
        pairs: dict[tuple[int, str], tuple[str, int, dict[tuple[str, str], None]]] = {}
        for run, response in responses_of_query:
            for statement in statements_of(run, response, citations):
                column = sheet.column_of[statement.item_id] if statement.doc_ids else -1
                for doc_id in statement.doc_ids:
                    row = sheet.row_of[doc_id]
                    cell_index = sheet.place(row, column)
                    assert cell_index is not None
                    alike = column, sheet.texts[row] or f"\0{doc_id}"
                    of_pair = pairs.setdefault(alike, (doc_id, int(flat[cell_index]), {}))
                    of_pair[2][run, query_id] = None
        for (column, _), (doc_id, machine, responses) in pairs.items():
            passage = track.texts.get(doc_id)
            yield CitedPair(sheet.items[column], doc_id, passage, machine, tuple(responses))


def labels_to_make(track: Assessment, pairs: Iterable[CitedPair]) -> tuple[PlannedLabel, ...]:
    """The citations whose passages have a text, in the order of `next_citations`."""
    candidates = [pair for pair in pairs if pair.passage is not None]
    chances = _chances(track.grades, candidates)
    planned = sorted((_planned(pair, chances.get(pair.key)) for pair in candidates), key=_order)
    # The first of each response, then the second of each ...; and within that the first of each query ...
    of_response: Counter[tuple[bool, str, str]] = Counter()
    rounds: list[tuple[bool, int]] = []
    for row in planned:
        graded = row.pair.machine >= 0
        responses = {(graded, *response) for response in row.pair.responses}
        rounds.append((graded, min(of_response[response] for response in responses)))
        of_response.update(responses)
    of_query: Counter[tuple[bool, int, str]] = Counter()
    turns: dict[int, tuple[bool, int, int]] = {}
    for index in sorted(range(len(planned)), key=rounds.__getitem__):
        turn = *rounds[index], planned[index].pair.item.query_id
        turns[index] = *rounds[index], of_query[turn]
        of_query[turn] += 1
    return tuple(planned[index] for index in sorted(turns, key=turns.__getitem__))


def _order(row: PlannedLabel) -> tuple[Any, ...]:
    return row.pair.machine >= 0, -row.runs, -(row.expected_change or 0.0), row.pair.key


def _planned(pair: CitedPair, chances: tuple[float, ...] | None) -> PlannedLabel:
    runs = len(pair.responses)
    if chances is None or pair.machine < 0:
        return PlannedLabel(pair, runs)
    now = WEIGHTS[pair.machine]
    expected = sum(p * abs(weight - now) for p, weight in zip(chances, WEIGHTS, strict=True))
    return PlannedLabel(pair, runs, chances, max(0.0, 1 - chances[pair.machine]), expected)


def _chances(
    grades: StoredGrades, pairs: Sequence[CitedPair]
) -> Mapping[tuple[str, str, str], tuple[float, ...]]:
    """Key of a pair -> the grader's probabilities of the labels 0, 1, 2, if it gives them."""
    store, grader = grades.store, grades.grader_id
    if grader is None or not store.has_probabilities(grader):
        return {}
    items = store.item_ids([asked_digest(pair.item) for pair in pairs])
    passages = store.passage_ids([passage_digest(pair.passage or "") for pair in pairs])
    chances = {}
    for pair, item, passage in zip(pairs, items, passages, strict=True):
        grade = None if item is None or passage is None else store.answer(grader, item, passage)
        of_labels = (grade.probabilities or ())[: len(WEIGHTS)] if grade is not None else ()
        if len(of_labels) == len(WEIGHTS) and sum(of_labels) > 0:
            chances[pair.key] = tuple(p / sum(of_labels) for p in of_labels)
    return chances
