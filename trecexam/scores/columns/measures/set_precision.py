"""SetP and SetRelP: the share of what is retrieved that is relevant."""

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


def set_precision(hits: Hits, rel: int, at_most: NDArray[np.int64] | None = None) -> Values:
    """|relevant retrieved| / |retrieved|, 0..1; 0 where nothing is retrieved.

    As trec_eval's `te_calc_set_P` (m_set_P.c), and with `at_most` as `te_calc_set_relative_P`
    (m_set_rel_P.c).

    Args:
        hits: all of the run's.
        rel: the label from which a passage is relevant, at least 1.
        at_most: of each query, how many passages are relevant; where fewer than are retrieved, it divides.

    Returns:
        float64 of shape (queries,).
    """
    below = hits.n_retrieved if at_most is None else np.minimum(hits.n_retrieved, at_most)
    return ratio(n_relevant_at(hits, rel), below)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes SetP(rel, relative, judged_only)."""
    rel = measure["rel"]
    at_most = n_relevant(judged, rel) if measure["relative"] else None
    return lambda hits: set_precision(considered(measure, hits), rel, at_most)


MEASURES = (
    ColumnMeasure(
        "SetP",
        frozenset(("rel", "relative", "judged_only")),
        computation,
        "`rel` from 1, `relative`, `judged_only`",
        depends_on_pool="relative",
    ),
)
