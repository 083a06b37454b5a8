"""AP and AP@k: the mean of the precision at the relevant passages."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    considered,
    last_sum,
    n_relevant,
    ratio,
)
from trecexam.scores.columns.ranked import Hits


def average_precision(hits: Hits, rel: int, relevant: NDArray[np.int64]) -> Values:
    """The sum of the precision at each rank with a relevant passage / |relevant|, 0..1.

    As trec_eval's `te_calc_map` (m_map.c) and, with the hits at the first ranks, `te_calc_map_cut`
    (m_map_cut.c): 0 where nothing is relevant. Buckley & Voorhees, "Retrieval System Evaluation", in "TREC:
    Experiment and Evaluation in Information Retrieval", MIT Press 2005.

    Args:
        hits: at the ranks that count.
        rel: the label from which a passage is relevant, at least 1.
        relevant: of each query, how many passages are relevant.

    Returns:
        float64 of shape (queries,).
    """
    is_relevant = hits.labels >= rel
    so_far = np.cumsum(is_relevant, axis=1)
    precisions = np.where(is_relevant, so_far / (hits.ranks + 1.0), 0.0)
    return ratio(last_sum(precisions), relevant)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes AP(rel, judged_only)@k."""
    rel = measure["rel"]
    relevant = n_relevant(judged, rel)
    return lambda hits: average_precision(considered(measure, hits), rel, relevant)


MEASURES = (
    ColumnMeasure(
        "AP",
        frozenset(("cutoff", "rel", "judged_only")),
        computation,
        "`cutoff`, `rel` from 1, `judged_only`",
        depends_on_pool=True,
    ),
)
