"""The measures, one concept a file: pure functions from the hits of a run to a value for each query.

Every module has `PARAMETERS`, the names of the parameters that it heeds, and `computation`, which works out
what depends on the judgments alone and returns the function that is left.
"""

from __future__ import annotations

from types import ModuleType

from trecexam.scores.columns.measures import (
    alpha_ndcg,
    average_precision,
    counts,
    cover,
    judged_share,
    ndcg,
    precision,
    r_precision,
    recall,
    reciprocal_rank,
    set_precision,
    success,
)

#: The name of a measure, as ir_measures has it, and the module that computes it.
MODULES: dict[str, ModuleType] = {
    "AP": average_precision,
    "Cover": cover,
    "ECover": cover,
    "Judged": judged_share,
    "NumRel": counts,
    "NumRet": counts,
    "P": precision,
    "R": recall,
    "RR": reciprocal_rank,
    "Rprec": r_precision,
    "SetP": set_precision,
    "SetR": recall,
    "Success": success,
    "alpha_nDCG": alpha_ndcg,
    "nCover": cover,
    "nDCG": ndcg,
}
