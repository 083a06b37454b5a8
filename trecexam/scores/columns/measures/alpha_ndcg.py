"""alpha_nDCG@k: nDCG in which an item's gain falls each time that it is reached again."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.measures import alpha_ideal
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    considered,
    ratio,
)
from trecexam.scores.columns.ranked import NO_RANK, Hits
from trecexam.scores.labels import naming


def alpha_dcg(hits: Hits, reached: NDArray[np.bool_], alpha: float) -> Values:
    """The sum over the ranks of log(2)/log(rank + 1) * the sum of (1 - alpha)^(times reached before).

    As ndeval's `computeDCG` before its normalisation (ndeval.c, TREC Web track): items are added one by one,
    then ranks. Clarke et al., "Novelty and Diversity in Information Retrieval Evaluation", SIGIR 2008.

    Args:
        hits: at the ranks that count, at most 20.
        reached: of `reached_items`.
        alpha: 0..1.

    Returns:
        float64 of shape (queries,).
    """
    n_queries, width = hits.rows.shape
    discount = np.append(alpha_ideal.discounts(), 0.0)[np.where(hits.ranks == NO_RANK, -1, hits.ranks)]
    gain = np.ones((n_queries, reached.shape[1]), np.float64)
    total = np.zeros(n_queries, np.float64)
    for column in range(width):
        at_rank = reached[hits.rows[:, column]]
        total += alpha_ideal.gains(at_rank, gain, alpha) * discount[:, column]
        gain *= np.where(at_rank, 1.0 - alpha, 1.0)
    return total


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes alpha_nDCG(rel, alpha)@k.

    Raises:
        ValueError: the judgments have no ratings of items.
    """
    alpha, cutoff = measure["alpha"], measure["cutoff"]
    reached = reached_items(judged, measure["rel"], alpha)
    uniform = alpha_ideal.uniform_dcg(judged, reached, alpha, cutoff)
    ideal = ratio(alpha_ideal.ideal_dcg(judged, reached, alpha, cutoff), uniform)
    return lambda hits: ratio(ratio(alpha_dcg(considered(measure, hits), reached, alpha), uniform), ideal)


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


def reached_items(judged: Judged, rel: int, alpha: float) -> NDArray[np.bool_]:
    """Whether each passage reaches each item: bool of shape (passages + 1, items), False in the last row.

    With a `min_rating` in the judgments, rel = 1 is that rating, as in the 0/1 rows of `subtopic_qrels`; a
    greater rel is a rating itself, as in `rating_qrels`.

    The sums of alpha_nDCG depend on the order of items in their last bit, and where such a bit decides a
    tie, the ideal ranking does. Items are in the order in which pyndeval meets them in these rows. With
    alpha = 0.5 all sums are exact, and the order is left unchanged.

    Raises:
        ValueError: the judgments have no ratings of items.
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
