"""alpha_nDCG@k: nDCG in which an item's gain falls each time that it is reached again."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures import alpha_ideal
from trecexam.scores.columns.measures.alpha_items import reached_items
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    considered,
    cutoff_of,
    ratio,
)
from trecexam.scores.columns.ranked import NO_RANK, Hits

#: ndeval computes nothing below this rank.
MAX_CUTOFF = 20


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


def _takes(measure: Measure) -> bool:
    """Whether ndeval computes it and ir_measures accepts it."""
    within = (cutoff_of(measure) or MAX_CUTOFF + 1) <= MAX_CUTOFF
    return bool(within and 0 <= measure["alpha"] <= 1 and not measure.params.get("judged_only"))


MEASURES = (
    ColumnMeasure(
        "alpha_nDCG",
        frozenset(("cutoff", "rel", "alpha", "judged_only")),
        computation,
        "`cutoff` up to 20, `rel` from 1, `alpha` 0..1",
        depends_on_pool=True,
        takes=_takes,
        on_items=True,
    ),
)
