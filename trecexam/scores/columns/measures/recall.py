"""R@k and SetR: the share of the relevant passages that are retrieved."""

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
    n_relevant_at,
    ratio,
)
from trecexam.scores.columns.ranked import Hits


def recall(hits: Hits, rel: int, relevant: NDArray[np.int64]) -> Values:
    """|relevant at the hits| / |relevant|, 0..1; 0 where nothing is relevant.

    As trec_eval's `te_calc_recall` (m_recall.c) and, with all hits, `te_calc_set_recall` (m_set_recall.c).

    Args:
        hits: at the ranks that count.
        rel: the label from which a passage is relevant, at least 1.
        relevant: of each query, how many passages are relevant.

    Returns:
        float64 of shape (queries,).
    """
    return ratio(n_relevant_at(hits, rel), relevant)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes R(rel, judged_only)@k, or SetR(rel)."""
    rel = measure["rel"]
    relevant = n_relevant(judged, rel)
    return lambda hits: recall(considered(measure, hits), rel, relevant)


_PARAMETERS = frozenset(("cutoff", "rel", "judged_only"))

MEASURES = (
    ColumnMeasure(
        "R", _PARAMETERS, computation, "`cutoff`, `rel` from 1, `judged_only`", depends_on_pool=True
    ),
    ColumnMeasure("SetR", _PARAMETERS, computation, "`rel` from 1", depends_on_pool=True),
)
