"""Which sentences with a passage that they cite are worth a person's look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from converters.support_labels import LABELS
from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import TrecexamError, did_you_mean
from trecexam.features.judge_next.shown import beginning
from trecexam.scores.support import WEIGHTS
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.line.support import SupportCells, SupportPair


@dataclass(frozen=True)
class PlannedLabel:
    """A sentence with a passage that it cites, to be labelled by a person.

    Attributes:
        runs: how many runs have a response with both.
        chances: the grader's probabilities of no, partial and full support; None where it has none.
        p_change: the probability that a person says another label than the grader; None as above, and where
            the grader has none.
        expected_change: by how much the citation's weight, 0..1, is expected to change; None likewise.
    """

    pair: SupportPair
    runs: int
    chances: tuple[float, ...] | None = None
    p_change: float | None = None
    expected_change: float | None = None


@dataclass(frozen=True)
class SupportPlan:
    """What to label next of what responses cite.

    Attributes:
        rows: the first to label first.
        candidates: sentences with a passage that nobody labelled; `judged` those that a person did, `no_text`
            those whose passage has no text here: both are left out.
        ungraded: of the candidates, those without a label of the grader.
    """

    rows: tuple[PlannedLabel, ...]
    candidates: int
    judged: int
    no_text: int
    ungraded: int

    def table(self, top: int | None = None) -> Table:
        """The first `top` rows (None: all); texts are cut and without control characters."""
        header = ("place", "query_id", "doc_id", "item_id", "label", "p_change", "expected_change", "runs")
        rows = (
            (
                *(place, *row.pair.key, _label(row.pair), row.p_change, row.expected_change, row.runs),
                *(beginning(row.pair.item.text), beginning(row.pair.passage or "")),
            )
            for place, row in enumerate(self.rows[:top], 1)
        )
        return Table((*header, "sentence", "text"), tuple(rows))

    def as_json(self, top: int | None = None) -> dict[str, Any]:
        """The first `top` rows (None: all) with whole texts and the grader's probabilities."""
        return {
            "level": "support",
            "candidates": self.candidates,
            "judged": self.judged,
            "no_text": self.no_text,
            "ungraded": self.ungraded,
            "planned": len(self.rows),
            "judgments": [
                {
                    "place": place,
                    **dict(zip(("query_id", "doc_id", "item_id"), row.pair.key, strict=True)),
                    "label": _label(row.pair),
                    "p_change": row.p_change,
                    "expected_change": row.expected_change,
                    "runs": row.runs,
                    "probabilities": dict(zip(LABELS, row.chances, strict=True)) if row.chances else {},
                    "sentence": row.pair.item.text,
                    "text": row.pair.passage,
                }
                for place, row in enumerate(self.rows[:top], 1)
            ],
        }


def next_support(
    track: Assessment, *, query_ids: Collection[str] = (), budget: int | None = None
) -> SupportPlan:
    """Which sentences of responses a person should label with what they cite, the first one first.

    Those without a label of the grader go first; among these, and then among the others, the first of each
    response before the second of any, and of each query before the next of any. What decides within that is
    how many runs share it, then how much its weight is expected to change by the grader's probabilities.

    Args:
        query_ids: only these queries; none for all.
        budget: rows; None for all.

    Raises:
        TrecexamError: no [support] in the settings, no response, or an unknown query.
    """
    cells = track.support
    if cells is None:
        raise TrecexamError(
            "nothing cited is graded without a section [support] in trecexam.toml; it may be empty",
            path=track.folder.config_path,
        )
    known = {statement.query_id for statement in cells.statements}
    for query_id in query_ids:
        if query_id not in known:
            hint = did_you_mean(query_id, known, before="; ")
            raise TrecexamError(f"no response to query '{query_id}'{hint}", path=track.folder.root)
    pairs = [pair for pair in cells.pairs if not query_ids or pair.item.query_id in query_ids]
    judged = [pair for pair in pairs if pair.key in cells.human]
    rows = labels_to_make(cells, pairs)
    return SupportPlan(
        rows[:budget],
        len(rows),
        len(judged),
        len(pairs) - len(judged) - len(rows),
        sum(row.pair.machine < 0 for row in rows),
    )


def labels_to_make(cells: SupportCells, pairs: Iterable[SupportPair]) -> tuple[PlannedLabel, ...]:
    """These without those that a person labelled or that have no text, in the order of `next_support`."""
    candidates = [pair for pair in pairs if pair.key not in cells.human and pair.passage is not None]
    chances = _chances(cells, candidates)
    planned = sorted((_planned(cells, pair, chances.get(pair.key)) for pair in candidates), key=_order)
    # The first of each response, then the second of each ...; and within that the first of each query ...
    of_response: Counter[tuple[bool, str, str]] = Counter()
    rounds: list[tuple[bool, int]] = []
    for row in planned:
        graded = row.pair.machine >= 0
        responses = {(graded, *cells.statements[place][:2]) for place in row.pair.places}
        rounds.append((graded, min(of_response[response] for response in responses)))
        of_response.update(responses)
    of_query: Counter[tuple[bool, int, str]] = Counter()
    turns: dict[int, tuple[bool, int, int]] = {}
    for place in sorted(range(len(planned)), key=rounds.__getitem__):
        turn = *rounds[place], planned[place].pair.item.query_id
        turns[place] = *rounds[place], of_query[turn]
        of_query[turn] += 1
    return tuple(planned[place] for place in sorted(turns, key=turns.__getitem__))


def _order(row: PlannedLabel) -> tuple[Any, ...]:
    return row.pair.machine >= 0, -row.runs, -(row.expected_change or 0.0), row.pair.key


def _planned(cells: SupportCells, pair: SupportPair, chances: tuple[float, ...] | None) -> PlannedLabel:
    runs = len({cells.statements[place].run for place in pair.places})
    if chances is None or pair.machine < 0:
        return PlannedLabel(pair, runs)
    now = WEIGHTS[pair.machine]
    expected = sum(p * abs(weight - now) for p, weight in zip(chances, WEIGHTS, strict=True))
    return PlannedLabel(pair, runs, chances, max(0.0, 1 - chances[pair.machine]), expected)


def _chances(
    cells: SupportCells, pairs: list[SupportPair]
) -> Mapping[tuple[str, str, str], tuple[float, ...]]:
    """The key of a pair -> the grader's probabilities of the labels 0, 1, 2, where it has them."""
    store, grader = cells.grades.store, cells.grades.grader_id
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


def _label(pair: SupportPair) -> str:
    return LABELS[pair.machine] if pair.machine >= 0 else ""
