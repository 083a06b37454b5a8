"""Filling judgment holes: automatic labels go beside human ones, and change none of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from converters.records import NOT_JUDGED, Qrel, judgment

if TYPE_CHECKING:
    from trecexam.features.fill.arithmetic.scale_map import ScaleMap
    from trecexam.line.official import PeoplesJudgment

#: query_id -> doc_id -> label
Labels = Mapping[str, Mapping[str, int]]
#: (query_id, doc_id) -> (who, why)
Overriders = Mapping[tuple[str, str], tuple[str, str]]
#: What separates names, and reasons, of several people.
AND = "; "


@dataclass(frozen=True)
class Machine:
    """What gave an automatic label: the grader's name, its model and its prompt ("" where it has none)."""

    grader: str
    model: str = ""
    prompt: str = ""


@dataclass(frozen=True)
class MergedRow:
    """A line of merged qrels, and who said it.

    Attributes:
        qrel: the line.
        source: "human" (a line of the official judgments, or with `who` a judgment of the track's people),
            "unjudged" (an official line that says `NOT_JUDGED`), "model", "override" (a person rated the
            passage, or items of it, in the grader's place), or "learned".
        label: on the official scale. It is the line's own, unless holes are written as unjudged.
        rating: the automatic label on the rubric's scale; of a learned line the expected label on the
            official one; None of a human line.
        machine: what graded it, or encoded its texts; None of a human line.
        confidence: the probability, 0..1, of `rating` after the grader, or of a learned `label`; None where
            there is none.
        who, why: of an override, and of a judgment of the track's people.
    """

    qrel: Qrel
    source: str
    label: int
    rating: float | None = None
    machine: Machine | None = None
    confidence: float | None = None
    who: str = ""
    why: str = ""


@dataclass(frozen=True)
class HoleLabel:
    """What a hole gets: its label on the official scale, the expected one and, where it is known, the
    probability of the label.
    """

    label: int
    gain: float
    confidence: float | None


def holes_of(
    pool: Mapping[str, Collection[str]], judged: Mapping[str, Collection[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the pooled passages without an official judgment.

    Returns:
        query_id -> doc_ids, in the pool's order; only queries with holes.
    """
    holes = {
        query_id: tuple(doc_id for doc_id in doc_ids if doc_id not in judged.get(query_id, ()))
        for query_id, doc_ids in pool.items()
    }
    return {query_id: doc_ids for query_id, doc_ids in holes.items() if doc_ids}


def with_both(automatic: Labels, official: Labels) -> tuple[list[int], list[int]]:
    """The labels of the passages that have both, automatic ones and official ones, in the same order."""
    both = [
        (label, official[query_id][doc_id])
        for query_id, labels in automatic.items()
        if query_id in official
        for doc_id, label in labels.items()
        if doc_id in official[query_id]
    ]
    return [label for label, _ in both], [judgment for _, judgment in both]


def merge(
    official: Sequence[Qrel],
    holes: Mapping[str, Sequence[str]],
    automatic: Labels,
    rule: ScaleMap,
    machines: Mapping[str, Machine],
    *,
    people: Sequence[PeoplesJudgment] = (),
    confidences: Mapping[str, Mapping[str, float]] | None = None,
    overridden: Overriders | None = None,
    as_unjudged: bool = False,
) -> tuple[MergedRow, ...]:
    """Return the official lines, then people's judgments, and the holes that have an automatic label.

    A line of the file that says `NOT_JUDGED` gives way to the new line of its passage.

    Args:
        official: the judgments, in their order, which is kept.
        holes: query_id -> doc_ids that nobody judges; others must not be among them.
        automatic: labels on the rubric's scale; holes without one stay holes.
        rule: gives official labels for automatic ones.
        machines: query_id -> what graded it.
        confidences: query_id -> doc_id -> probability of the automatic label.
        people: judgments of the track's people, of passages that no line of `official` judges.
        overridden: the passages on which people rated in the grader's place.
        as_unjudged: the new lines' label is `NOT_JUDGED`; what it would have been is in `label` alone.

    Returns:
        Official rows in their order, then others by query and document. New ones have the iteration "0".
    """
    persons, sure = overridden or {}, confidences or {}

    def row(query_id: str, doc_id: str) -> MergedRow | None:
        rating = automatic.get(query_id, {}).get(doc_id)
        if rating is None:
            return None
        label = rule(rating)
        person = persons.get((query_id, doc_id))
        return MergedRow(
            Qrel(query_id, doc_id, NOT_JUDGED if as_unjudged else label),
            "override" if person else "model",
            label,
            rating,
            machines[query_id],
            None if person else sure.get(query_id, {}).get(doc_id),
            *(person or ("", "")),
        )

    return _merged(official, people, holes, row)


def merge_labels(
    official: Sequence[Qrel],
    holes: Mapping[str, Sequence[str]],
    labels: Mapping[str, Mapping[str, HoleLabel]],
    machine: Machine,
    *,
    people: Sequence[PeoplesJudgment] = (),
    as_unjudged: bool = False,
) -> tuple[MergedRow, ...]:
    """As `merge`, with learned labels, on the official scale already; holes without one stay holes."""

    def row(query_id: str, doc_id: str) -> MergedRow | None:
        prediction = labels.get(query_id, {}).get(doc_id)
        if prediction is None:
            return None
        return MergedRow(
            Qrel(query_id, doc_id, NOT_JUDGED if as_unjudged else prediction.label),
            "learned",
            prediction.label,
            prediction.gain,
            machine,
            prediction.confidence,
        )

    return _merged(official, people, holes, row)


def _merged(
    official: Sequence[Qrel],
    people: Sequence[PeoplesJudgment],
    holes: Mapping[str, Sequence[str]],
    row: Callable[[str, str], MergedRow | None],
) -> tuple[MergedRow, ...]:
    filled = (row(query_id, doc_id) for query_id, doc_ids in holes.items() for doc_id in doc_ids)
    new = [*map(_of_people, people), *(merged for merged in filled if merged is not None)]
    new.sort(key=lambda merged: merged.qrel[:2])
    replaced = {merged.qrel[:2] for merged in new}
    kept = (
        MergedRow(qrel, "unjudged" if judgment(qrel.relevance) is None else "human", qrel.relevance)
        for qrel in official
        if qrel[:2] not in replaced
    )
    return (*kept, *new)


def _of_people(row: PeoplesJudgment) -> MergedRow:
    """Return the line of a judgment that people of the track gave."""
    query_id, doc_id, label, who, why = row
    return MergedRow(Qrel(query_id, doc_id, label), "human", label, who=AND.join(who), why=AND.join(why))
