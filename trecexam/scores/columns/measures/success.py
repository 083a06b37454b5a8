"""Success@k: whether there is a relevant passage among the first k (also called Hit@k)."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure

from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures.base import ColumnMeasure, Computation, Values, considered
from trecexam.scores.columns.ranked import Hits


def success(hits: Hits, rel: int) -> Values:
    """1 where a passage at the hits is relevant, else 0.

    As trec_eval's `te_calc_success` (m_success.c).

    Args:
        hits: at the ranks that count.
        rel: the label from which a passage is relevant, at least 1.

    Returns:
        float64 of shape (queries,).
    """
    return np.asarray((hits.labels >= rel).any(axis=1), np.float64)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes Success(rel, judged_only)@k."""
    return lambda hits: success(considered(measure, hits), measure["rel"])


MEASURES = (
    ColumnMeasure(
        "Success",
        frozenset(("cutoff", "rel", "judged_only")),
        computation,
        "`cutoff`, `rel` from 1, `judged_only`",
    ),
)
