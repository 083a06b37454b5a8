"""NumRet, NumRelRet and NumRel: counts of retrieved and relevant passages."""

from __future__ import annotations

import numpy as np
from ir_measures import Measure

from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    n_relevant,
    n_relevant_at,
)
from trecexam.scores.columns.ranked import Hits


def n_relevant_retrieved(hits: Hits, rel: int) -> Values:
    """The number of relevant passages at the hits, as trec_eval's `te_calc_num_rel_ret` (m_num_rel_ret.c)."""
    return n_relevant_at(hits, rel).astype(np.float64)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes NumRet, NumRet(rel) or NumRel; 0 each where the run skips the query, as ir_measures has it."""
    if measure.NAME == "NumRel":
        relevant = n_relevant(judged, measure["rel"]).astype(np.float64)
        return lambda hits: np.where(hits.n_retrieved > 0, relevant, 0.0)
    if "rel" in measure.params:
        return lambda hits: n_relevant_retrieved(hits, measure["rel"])
    return lambda hits: hits.n_retrieved.astype(np.float64)


_PARAMETERS = frozenset(("rel",))

MEASURES = (
    ColumnMeasure(
        "NumRel",
        _PARAMETERS,
        computation,
        "`rel=1`",
        depends_on_pool=True,
        takes=lambda measure: bool(measure["rel"] == 1),
        depth=lambda measure: 1,
    ),
    ColumnMeasure(
        "NumRet",
        _PARAMETERS,
        computation,
        "none; with `rel` from 1 it is NumRelRet",
        depth=lambda measure: None if "rel" in measure.params else 1,
    ),
)
