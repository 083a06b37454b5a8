"""Judgment holes: passages of a ranking that nobody has judged, and passages that have no grade."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Holes(NamedTuple):
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


@dataclass(frozen=True)
class PoolHoles:
    """The holes of all runs together, each passage of a query counted once.

    Attributes:
        depth: the ranks that count.
        passages: how many are in them.
        unjudged: how many of those have no official judgment; None where there are no judgments.
        unjudged_alone: how many of these a single run has in its first `depth` ranks.
        ungraded: how many passages have no rating.
    """

    depth: int
    passages: int
    unjudged: int | None
    unjudged_alone: int | None
    ungraded: int

    def plus(self, other: PoolHoles) -> PoolHoles:
        """Return the sums over the passages of both, of the same depth."""
        if self.unjudged is None or other.unjudged is None:
            unjudged = unjudged_alone = None
        else:
            unjudged = self.unjudged + other.unjudged
            unjudged_alone = (self.unjudged_alone or 0) + (other.unjudged_alone or 0)
        passages, ungraded = self.passages + other.passages, self.ungraded + other.ungraded
        return PoolHoles(self.depth, passages, unjudged, unjudged_alone, ungraded)


def total(parts: Iterable[Holes]) -> Holes:
    """Return the sums over several rankings, one a query, and the mean of Judged over all of them.

    A query without results counts 0 in the mean, as in `trec_eval -c`.
    """
    rankings = tuple(parts)
    retrieved = sum(part.retrieved for part in rankings)
    ungraded = sum(part.ungraded for part in rankings)
    unjudged = [part.unjudged for part in rankings if part.unjudged is not None]
    if len(unjudged) < len(rankings):
        return Holes(retrieved, None, ungraded, None)
    rates = [part.judged for part in rankings if part.judged is not None]
    return Holes(retrieved, sum(unjudged), ungraded, sum(rates) / len(rates) if rates else 0.0)


def is_among(doc_ids: Sequence[str], among: Collection[str]) -> NDArray[np.bool_]:
    """Return True for each passage among these, then False once for rank -1; shape (n_docs + 1,)."""
    return np.array([doc_id in among for doc_id in doc_ids] + [False], np.bool_)


def holes_of_runs(
    ranks: NDArray[np.int32], judged: NDArray[np.bool_] | None, rated: NDArray[np.bool_]
) -> list[Holes]:
    """Return the holes of each run in the first ranks for one query.

    Judged@depth divides by the number of passages that are there, which may be fewer than `depth`, as
    ir_measures' provider does (`trec_eval` has no such measure); of an empty ranking it is 0.

    Args:
        ranks: of shape (n_runs, depth), see `trecexam.inputs.pool.PooledQuery`.
        judged, rated: of each pooled passage, see `is_among`; `judged` is None where there are no judgments.
    """
    retrieved = (ranks >= 0).sum(axis=1).tolist()
    ungraded = [n - met for n, met in zip(retrieved, rated[ranks].sum(axis=1).tolist(), strict=True)]
    if judged is None:
        return [Holes(n, None, missing, None) for n, missing in zip(retrieved, ungraded, strict=True)]
    return [
        Holes(n, n - met, missing, met / n if n else 0.0)
        for n, met, missing in zip(retrieved, judged[ranks].sum(axis=1).tolist(), ungraded, strict=True)
    ]


def pool_holes(
    ranks: NDArray[np.int32], judged: NDArray[np.bool_] | None, rated: NDArray[np.bool_], depth: int
) -> PoolHoles:
    """Return the holes of all runs together for one query; arguments as of `holes_of_runs`."""
    in_runs = np.bincount(ranks[ranks >= 0], minlength=len(rated) - 1)
    pooled = in_runs > 0
    n_passages, ungraded = int(pooled.sum()), int((pooled & ~rated[:-1]).sum())
    if judged is None:
        return PoolHoles(depth, n_passages, None, None, ungraded)
    unjudged = pooled & ~judged[:-1]
    unjudged_alone = int((unjudged & (in_runs == 1)).sum())
    return PoolHoles(depth, n_passages, int(unjudged.sum()), unjudged_alone, ungraded)
