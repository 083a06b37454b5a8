"""alpha_nDCG@k: nDCG in which an item's gain falls each time that it is reached again."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.measures.base import (
    NDEVAL_DEPTH,
    ColumnMeasure,
    Computation,
    Values,
    considered,
    ratio,
)
from trecexam.scores.columns.ranked import NO_RANK, Hits
from trecexam.scores.labels import naming

#: So many cells, queries x passages x items, are worked on at once: 32 MB.
_CELLS = 1 << 22


def alpha_dcg(hits: Hits, reached: NDArray[np.bool_], alpha: float) -> Values:
    """Return the sum over the ranks of log(2)/log(rank + 1) * the sum of (1 - alpha)^(times reached before).

    As ndeval's `computeDCG` before its normalisation (ndeval.c, TREC Web track): items are added one by one,
    then ranks. Clarke et al., "Novelty and Diversity in Information Retrieval Evaluation", SIGIR 2008. Hits
    are at the ranks that count, at most 20.
    """
    n_queries, width = hits.rows.shape
    discount = np.append(discounts(), 0.0)[np.where(hits.ranks == NO_RANK, -1, hits.ranks)]
    gain = np.ones((n_queries, reached.shape[1]), np.float64)
    total = np.zeros(n_queries, np.float64)
    for column in range(width):
        at_rank = reached[hits.rows[:, column]]
        total += gains(at_rank, gain, alpha) * discount[:, column]
        gain *= np.where(at_rank, 1.0 - alpha, 1.0)
    return total


def computation(measure: Measure, judged: Judged) -> Computation:
    """Compute alpha_nDCG(rel, alpha)@k; ValueError where the judgments have no ratings of items."""
    alpha, cutoff = measure["alpha"], measure["cutoff"]
    reached = reached_items(judged, measure["rel"], alpha)
    uniform = uniform_dcg(judged, reached, alpha, cutoff)
    ideal = ratio(ideal_dcg(judged, reached, alpha, cutoff), uniform)
    return lambda hits: ratio(ratio(alpha_dcg(considered(measure, hits), reached, alpha), uniform), ideal)


def reached_items(judged: Judged, rel: int, alpha: float) -> NDArray[np.bool_]:
    """Return which passage reaches which item: bool of shape (passages + 1, items), False in the last row.

    With a `min_rating` in the judgments, rel = 1 is that rating, as in the 0/1 rows of `subtopic_qrels`; a
    greater rel is a rating itself, as in `rating_qrels`.

    The sums of alpha_nDCG depend on the order of items in their last bit, and where such a bit decides a
    tie, the ideal ranking does. Items are in the order in which pyndeval meets them in these rows. With
    alpha = 0.5 all sums are exact, and the order is left unchanged.
    """
    from_subtopics = judged.min_rating is not None and rel == 1
    least = max(judged.min_rating or 0, 0) if from_subtopics else rel
    reached: NDArray[np.bool_] = judged.items >= least
    if judged.min_rating is None or alpha == 0.5:
        return reached
    return reached[:, _order(judged, by_item=from_subtopics)]


def _order(judged: Judged, *, by_item: bool) -> NDArray[np.intp]:
    """The items by their first rows: query by query, within it item by item or else passage by passage."""
    ratings = _with_named_items(judged)
    rated = ratings >= 0
    n_items = rated.shape[1]
    first_doc = rated.argmax(axis=0) if len(rated) else np.zeros(n_items, np.intp)
    first_query = np.append(judged.query_of_row, 0)[first_doc]
    never = ~rated.any(axis=0)
    if by_item:
        return np.lexsort((np.arange(n_items), first_query, never))
    # The rows of one passage rise in rating.
    first_rating = np.append(ratings, judged.items[-1:], axis=0)[first_doc, np.arange(n_items)]
    return np.lexsort((np.arange(n_items), first_rating, first_doc, never))


def _with_named_items(judged: Judged) -> NDArray[np.integer]:
    """The ratings of all passages, as in rows that name every item."""
    ratings = judged.items[:-1].copy()
    rated = judged.labels != UNJUDGED
    for i, n_items in enumerate(judged.n_items.tolist()):
        of_query = slice(int(judged.offsets[i]), int(judged.offsets[i + 1])), slice(n_items)
        ratings[of_query] = naming(ratings[of_query], rated[of_query[0]])
    return ratings


@lru_cache(maxsize=1)
def discounts() -> Values:
    """ndeval's discount of the ranks 0..19; shape (20,)."""
    return np.array(
        [1.0, *(math.log(2.0) / math.log(rank + 2.0) for rank in range(1, NDEVAL_DEPTH))], np.float64
    )


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
    """Return the DCG of passages that each reach all items, by which ndeval divides (1 at cutoff 1)."""
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
    """Return the DCG of each query's greedy ranking.

    `reached` has the shape (queries, passages, items); the passage that is to win a tie comes first. `left`
    is False where a query has no such passage.
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
    """Return True where any passage of each query reaches each item: (queries, items)."""
    reached_by = np.zeros((len(judged.query_ids), reached.shape[1]), np.bool_)
    np.logical_or.at(reached_by, judged.query_of_row, reached[:-1])
    return reached_by


MEASURES = (
    ColumnMeasure(
        "alpha_nDCG",
        frozenset(("cutoff", "rel", "alpha", "judged_only")),
        computation,
        "`cutoff` up to 20, `rel` from 1, `alpha` 0..1",
        depends_on_pool=True,
        takes=lambda measure: bool(0 <= measure["alpha"] <= 1),
        on_items=True,
    ),
)
