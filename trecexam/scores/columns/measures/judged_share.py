"""Judged and Judged@k: the share of what is retrieved that is judged."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from converters.records import NOT_JUDGED
from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.measures.base import ColumnMeasure, Computation, Values, considered, ratio
from trecexam.scores.columns.ranked import Hits


def judged_share(hits: Hits, retrieved: NDArray[np.int64]) -> Values:
    """Return |judged at the hits| / |retrieved|, 0..1; 0 where nothing is retrieved.

    As ir_measures' judged provider, but that `NOT_JUDGED` is no judgment. Where fewer than the cutoff are
    retrieved, their number divides.

    Args:
        hits: at the ranks that count.
        retrieved: of each query, how many entries there are at these ranks.

    Returns:
        float64 of shape (queries,).
    """
    return ratio(np.count_nonzero((hits.labels != UNJUDGED) & (hits.labels != NOT_JUDGED), axis=1), retrieved)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes Judged@k."""
    cutoff = measure.params.get("cutoff")

    def values(hits: Hits) -> Values:
        retrieved = hits.n_retrieved if cutoff is None else np.minimum(hits.n_retrieved, cutoff)
        return judged_share(considered(measure, hits), retrieved)

    return values


MEASURES = (ColumnMeasure("Judged", frozenset(("cutoff",)), computation, "`cutoff`"),)
