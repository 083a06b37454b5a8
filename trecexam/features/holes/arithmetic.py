"""Judgment holes: passages of a ranking that nobody has judged, and passages that have no grade."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Key = TypeVar("Key")


@dataclass(frozen=True)
class Holes:
    """The holes in the first ranks of one ranking, or of several together.

    Attributes:
        retrieved: passages in those ranks.
        unjudged: how many of them have no official judgment; None where there are no judgments.
        ungraded: how many of them have no rating on any item.
        judged: ir_measures' Judged@depth, 0..1; of several rankings the mean. None where `unjudged` is.
    """

    retrieved: int
    unjudged: int | None
    ungraded: int
    judged: float | None


def holes(ranking: Sequence[str], judged: frozenset[str] | None, rated: frozenset[str], depth: int) -> Holes:
    """The holes in the first `depth` ranks of a ranking.

    Judged@depth divides by the number of passages that are there, which may be fewer than `depth`, as
    ir_measures' provider does (`trec_eval` has no such measure); of an empty ranking it is 0.

    Args:
        ranking: doc_ids, best first, none twice.
        judged: those with an official judgment, negative ones included; None where there are no judgments.
        rated: those with a rating on any item.
    """
    first = ranking[:depth]
    ungraded = len(first) - len(rated.intersection(first))
    if judged is None:
        return Holes(len(first), None, ungraded, None)
    met = len(judged.intersection(first))
    return Holes(len(first), len(first) - met, ungraded, met / len(first) if first else 0.0)


def total(parts: Iterable[Holes]) -> Holes:
    """The sums over several rankings, one a query, and the mean of Judged over all of them.

    A query without results counts 0 in the mean, as in `trec_eval -c`.
    """
    found = tuple(parts)
    retrieved = sum(part.retrieved for part in found)
    ungraded = sum(part.ungraded for part in found)
    unjudged = [part.unjudged for part in found if part.unjudged is not None]
    if len(unjudged) < len(found):
        return Holes(retrieved, None, ungraded, None)
    rates = [part.judged for part in found if part.judged is not None]
    return Holes(retrieved, sum(unjudged), ungraded, sum(rates) / len(rates) if rates else 0.0)


def contributed_alone(rankings: Mapping[Key, Iterable[Collection[str]]]) -> dict[Key, set[str]]:
    """What each contributor alone brings into the pool of one query.

    Args:
        rankings: contributor (a run, or a team) -> the first ranks of each of its rankings.

    Returns:
        contributor -> the doc_ids that are in its rankings and in no other contributor's.
    """
    brought = {key: {doc_id for one in found for doc_id in one} for key, found in rankings.items()}
    by_how_many = Counter(doc_id for docs in brought.values() for doc_id in docs)
    return {key: {d for d in docs if by_how_many[d] == 1} for key, docs in brought.items()}
