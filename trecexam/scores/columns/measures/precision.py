"""P@k: the share of the first k ranks with a relevant passage."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure

from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    considered,
    n_relevant_at,
)
from trecexam.scores.columns.ranked import Hits


def precision(hits: Hits, rel: int, cutoff: int) -> Values:
    """|relevant in the first `cutoff` ranks| / cutoff, 0..1, also where fewer are retrieved.

    As trec_eval's `te_calc_P` (m_P.c); van Rijsbergen, "Information Retrieval", 1979.

    Args:
        hits: at the first `cutoff` ranks.
        rel: the label from which a passage is relevant, at least 1.

    Returns:
        float64 of shape (queries,).
    """
    values: Values = n_relevant_at(hits, rel) / np.float64(cutoff)
    return values


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes P(rel, judged_only)@k."""
    return lambda hits: precision(considered(measure, hits), measure["rel"], measure["cutoff"])


MEASURES = (
    ColumnMeasure(
        "P", frozenset(("cutoff", "rel", "judged_only")), computation, "`cutoff`, `rel` from 1, `judged_only`"
    ),
)
