"""Measures that depend on the pool: their values change if passages of other runs get labels."""

from __future__ import annotations

from collections.abc import Mapping

from ir_measures import Measure

from trecexam.scores.columns.measures import MEASURES

_RELEVANT = "the number of relevant passages"
_IDEAL = "the best ranking of the labelled passages"
_REACHED = "the number of items that any labelled passage reaches"

#: Of the measures that ir_measures' own providers compute: what of the pool their values are divided by, or
#: compared with. Those on columns say it of themselves. All others look at the run's own passages, and at the
#: bank: P, RR, Success, Judged, Cover ...
DIVIDES_BY: Mapping[str, str] = {
    "Bpref": _RELEVANT,
    "Compat": _IDEAL,
    "IPrec": _RELEVANT,
    "SetAP": _RELEVANT,
    "SetF": _RELEVANT,
    "infAP": _RELEVANT,
    # ndeval divides each of these by the items that are reached; the ideal ranking comes on top of it.
    "AP_IA": _REACHED,
    "ERR_IA": _REACHED,
    "NRBP": _REACHED,
    "P_IA": _REACHED,
    "StRecall": _REACHED,
    "alpha_DCG": _REACHED,
    "nERR_IA": _IDEAL,
    "nNRBP": _IDEAL,
}


def depends_on_pool(measure: Measure) -> bool:
    """Whether a run's value can change with the other runs, with unchanged labels of its passages."""
    declared = MEASURES.get(measure.NAME or "")
    if declared is None:
        return measure.NAME in DIVIDES_BY
    depends = declared.depends_on_pool
    return bool(measure.params.get(depends)) if isinstance(depends, str) else depends


def pool_measures() -> tuple[str, ...]:
    """The names of all measures that depend on the pool, with the parameter that causes it, if any."""
    on_columns = (
        f"{each.name}({each.depends_on_pool}=True)" if isinstance(each.depends_on_pool, str) else each.name
        for each in MEASURES.values()
        if each.depends_on_pool
    )
    return tuple(sorted((*on_columns, *DIVIDES_BY)))
