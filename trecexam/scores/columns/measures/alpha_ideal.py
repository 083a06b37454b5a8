"""The ideal ranking for alpha_nDCG, built greedily, and ndeval's bound for any ranking."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures.base import Values

#: So many ranks have a discount, as in ndeval.
DEPTH = 20
#: So many cells, queries x passages x items, are worked on at once: 32 MB.
_CELLS = 1 << 22


@lru_cache(maxsize=1)
def discounts() -> Values:
    """ndeval's discount of the ranks 0..19; shape (20,)."""
    return np.array([1.0, *(math.log(2.0) / math.log(rank + 2.0) for rank in range(1, DEPTH))], np.float64)


def gains(reached: NDArray[np.bool_], gain: Values, alpha: float) -> Values:
    """The sum of the gains of the items reached, as if added one by one: over the last axis of both."""
    if alpha == 0.5:
        # Sums of few powers of 1/2 are exact in any order.
        summed: Values = np.einsum("...i,...i->...", reached, gain)
        return summed
    total = np.zeros(np.broadcast_shapes(reached.shape, gain.shape)[:-1], np.float64)
    for item in range(gain.shape[-1]):
        total += np.where(reached[..., item], gain[..., item], 0.0)
    return total


def uniform_dcg(judged: Judged, reached: NDArray[np.bool_], alpha: float, cutoff: int) -> Values:
    """The DCG of passages that each reach all items, by which ndeval divides (except at rank 1).

    Returns:
        float64 of shape (queries,); 0 where no passage reaches any item, 1 for all others at cutoff 1.
    """
    n_reached = _any_by_query(judged, reached).sum(axis=1)
    if cutoff == 1:
        return np.where(n_reached > 0, 1.0, 0.0)
    gain, total = n_reached.astype(np.float64), np.zeros(len(n_reached), np.float64)
    for discount in discounts()[:cutoff].tolist():
        total += gain * discount
        gain = gain * (1.0 - alpha)
    return total


def ideal_dcg(judged: Judged, reached: NDArray[np.bool_], alpha: float, cutoff: int) -> Values:
    """The DCG of the greedy ranking, with the passage of highest gain at each rank.

    ndeval's `idealResult`: among equal gains the highest doc_id.

    Returns:
        float64 of shape (queries,).
    """
    useful = np.flatnonzero(reached[:-1].any(axis=1))
    query = judged.query_of_row[useful]
    counts = np.bincount(query, minlength=len(judged.query_ids))
    ends = np.cumsum(counts)
    total = np.zeros(len(counts), np.float64)
    # Queries with about as many passages go together, since all are padded to the longest.
    for chunk in _chunks(np.argsort(counts, kind="stable"), counts, reached.shape[1]):
        width = int(counts[chunk].max())
        column = np.arange(width)
        # doc_ids ascend, so that the highest one comes first when rows are taken from the end.
        positions = ends[chunk][:, None] - 1 - column
        rows = np.where(column < counts[chunk][:, None], useful[positions], -1)
        total[chunk] = _greedy(reached[rows], rows >= 0, alpha, cutoff)
    return total


def _greedy(reached: NDArray[np.bool_], left: NDArray[np.bool_], alpha: float, cutoff: int) -> Values:
    """The DCG of each query's greedy ranking.

    Args:
        reached: (queries, passages, items); the passage that is to win a tie comes first.
        left: (queries, passages): False where a query has no such passage.
    """
    left = left.copy()
    n_queries = np.arange(len(reached))
    # A product of matrices adds in its own order, see `gains`.
    weights = reached.astype(np.float64) if alpha == 0.5 else None
    gain = np.ones((len(reached), reached.shape[2]), np.float64)
    total = np.zeros(len(reached), np.float64)
    for discount in discounts()[: min(cutoff, reached.shape[1])].tolist():
        scores = np.where(left, _scores(reached, weights, gain, alpha), -1.0)
        best = scores.argmax(axis=1)
        total += np.maximum(scores[n_queries, best], 0.0) * discount
        left[n_queries, best] = False
        gain *= np.where(reached[n_queries, best], 1.0 - alpha, 1.0)
    return total


def _scores(reached: NDArray[np.bool_], weights: Values | None, gain: Values, alpha: float) -> Values:
    if weights is None:
        return gains(reached, gain[:, None, :], alpha)
    scores: Values = (weights @ gain[:, :, None])[:, :, 0]
    return scores


def _chunks(order: NDArray[np.intp], counts: NDArray[np.intp], n_items: int) -> list[NDArray[np.intp]]:
    """The queries that have passages, in pieces of a bounded size when padded."""
    order = order[counts[order] > 0]
    chunks, start = [], 0
    for end in range(1, len(order) + 1):
        full = end < len(order) and (end + 1 - start) * int(counts[order[end]]) * n_items > _CELLS
        if full or end == len(order):
            chunks.append(order[start:end])
            start = end
    return chunks


def _any_by_query(judged: Judged, reached: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether any passage of each query reaches each item: (queries, items)."""
    reached_by = np.zeros((len(judged.query_ids), reached.shape[1]), np.bool_)
    np.logical_or.at(reached_by, judged.query_of_row, reached[:-1])
    return reached_by
