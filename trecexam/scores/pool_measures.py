"""Which measures depend on the pool: their values change when passages of other runs get labels."""

from __future__ import annotations

from collections.abc import Mapping

from ir_measures import Measure

_RELEVANT = "the number of relevant passages"
_IDEAL = "the best ranking of the labelled passages"
_REACHED = "the number of items that any labelled passage reaches"

#: Measure -> what of the pool its values are divided by, or compared with. SetP is one with `relative`.
#: All others look at the run's own passages, and at the bank: P, RR, Success, SetP, Judged, Cover, ...
DIVIDES_BY: Mapping[str, str] = {
    "AP": _RELEVANT,
    "Bpref": _RELEVANT,
    "Compat": _IDEAL,
    "IPrec": _RELEVANT,
    "NumRel": _RELEVANT,
    "R": _RELEVANT,
    "Rprec": _RELEVANT,
    "SetAP": _RELEVANT,
    "SetF": _RELEVANT,
    "SetR": _RELEVANT,
    "infAP": _RELEVANT,
    "nDCG": _IDEAL,
    "nCover": _REACHED,
    # ndeval divides each of these by the items that are reached; the ideal ranking comes on top of it.
    "AP_IA": _REACHED,
    "ERR_IA": _REACHED,
    "NRBP": _REACHED,
    "P_IA": _REACHED,
    "StRecall": _REACHED,
    "alpha_DCG": _REACHED,
    "alpha_nDCG": _IDEAL,
    "nERR_IA": _IDEAL,
    "nNRBP": _IDEAL,
}


def depends_on_pool(measure: Measure) -> bool:
    """Whether a run's value may change with the other runs, though its own labels stay."""
    return measure.NAME in DIVIDES_BY or bool(measure.NAME == "SetP" and measure.params.get("relative"))
