"""RR and RR@k: one over the rank of the first relevant passage."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure

from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures.base import ColumnMeasure, Computation, Values, considered
from trecexam.scores.columns.ranked import Hits


def reciprocal_rank(hits: Hits, rel: int) -> Values:
    """1 / rank of the first relevant passage, counted from 1; 0 if no hit is relevant.

    As trec_eval's `te_calc_recip_rank` (m_recip_rank.c), and with the hits at the first ranks as MS MARCO's
    `compute_metrics`, which ir_measures takes for RR@k. Kantor & Voorhees, "The TREC-5 Confusion Track",
    Information Retrieval 2, 2000.

    Args:
        hits: at the ranks that count.
        rel: the label from which a passage is relevant, at least 1.

    Returns:
        float64 of shape (queries,), 0..1.
    """
    if not hits.labels.shape[1]:
        return np.zeros(len(hits.labels), np.float64)
    is_relevant = hits.labels >= rel
    first = is_relevant.argmax(axis=1)
    rows = np.arange(len(first))
    values: Values = np.where(is_relevant[rows, first], 1.0 / (hits.ranks[rows, first] + 1.0), 0.0)
    return values


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes RR(rel, judged_only)@k."""
    return lambda hits: reciprocal_rank(considered(measure, hits), measure["rel"])


MEASURES = (
    ColumnMeasure(
        "RR",
        frozenset(("cutoff", "rel", "judged_only")),
        computation,
        "`rel` from 1, `cutoff` or `judged_only`",
        takes=lambda measure: not (measure.params.get("judged_only") and "cutoff" in measure.params),
    ),
)
