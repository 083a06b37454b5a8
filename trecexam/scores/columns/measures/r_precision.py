"""Rprec: the precision at rank R, R being the number of relevant passages."""

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
    n_relevant,
    ratio,
)
from trecexam.scores.columns.ranked import Hits


def r_precision(hits: Hits, rel: int, relevant: NDArray[np.int64]) -> Values:
    """|relevant in the first R ranks| / R, 0..1; 0 where nothing is relevant.

    As trec_eval's `te_calc_Rprec` (m_Rprec.c). Buckley & Voorhees, "Retrieval System Evaluation", in "TREC:
    Experiment and Evaluation in Information Retrieval", MIT Press 2005.

    Args:
        hits: all of the run's.
        rel: the label from which a passage is relevant, at least 1.
        relevant: of each query R.

    Returns:
        float64 of shape (queries,).
    """
    counted = (hits.labels >= rel) & (hits.ranks < relevant[:, None])
    return ratio(np.count_nonzero(counted, axis=1), relevant)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes Rprec(rel, judged_only)."""
    rel = measure["rel"]
    relevant = n_relevant(judged, rel)
    return lambda hits: r_precision(considered(measure, hits), rel, relevant)


MEASURES = (
    ColumnMeasure(
        "Rprec",
        frozenset(("rel", "judged_only")),
        computation,
        "`rel` from 1, `judged_only`",
        depends_on_pool=True,
    ),
)
