"""Parameters of measures: which a measure takes, and with which values."""

from __future__ import annotations

from typing import Any

from ir_measures import Measure
from ir_measures.providers.base import NOT_PROVIDED

from trecexam.errors import shortened

#: Measures on subtopics (here: items), computed by ndeval.
DIVERSITY = frozenset(
    ("alpha_nDCG", "alpha_DCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall")
)
#: ndeval computes nothing below this rank.
NDEVAL_DEPTH = 20
#: The greatest cutoff or rel that the C programs beneath can hold.
_MAX_INT = 2**31 - 1
#: Parameters that are whole numbers of at least 1.
_COUNTED = frozenset(("cutoff", "rel", "partial"))


def check_parameters(metric: Measure) -> None:
    """Refuse parameters that a measure does not take, and values that nothing computes.

    Raises:
        ValueError: with the reason, and what the measure takes.
    """
    for key in metric.params:
        if key not in metric.SUPPORTED_PARAMS:
            raise ValueError(f"{metric.NAME} has no parameter `{key}`; {_takes(metric)}")
    for key, info in metric.SUPPORTED_PARAMS.items():
        value = metric.params.get(key, NOT_PROVIDED)
        needed = info.required or (key == "cutoff" and metric.NAME in DIVERSITY)
        if value is NOT_PROVIDED:
            if needed:
                raise ValueError(f"{metric.NAME} needs its parameter `{key}`; {_takes(metric)}")
            continue
        boolean = isinstance(value, bool) and info.dtype is not bool
        outside = key in _COUNTED and isinstance(value, int) and not 1 <= value <= _MAX_INT
        if key == "gains" and not _are_whole(value):
            raise ValueError(shortened(f"{metric.NAME}: gains={value!r} is not possible: give whole numbers"))
        if boolean or outside or not info.validate(value):  # type: ignore[no-untyped-call]
            raise ValueError(shortened(f"{metric.NAME}: {key}={value!r} is not possible; {_takes(metric)}"))
    if metric.NAME in DIVERSITY and metric.params.get("cutoff", 1) > NDEVAL_DEPTH:
        raise ValueError(f"{metric}: ndeval, which computes it, takes cutoffs up to {NDEVAL_DEPTH}")
    if metric.NAME in DIVERSITY and metric.params.get("judged_only"):
        raise ValueError(f"{metric}: ir_measures cannot compute diversity measures with judged_only")
    try:
        metric.validate_params()  # type: ignore[no-untyped-call]
    except AssertionError as error:
        raise ValueError(f"{metric.NAME}: {error}; {_takes(metric)}") from None


def _are_whole(gains: Any) -> bool:
    pairs = gains.items() if isinstance(gains, dict) else ()
    return all(isinstance(number, int) and not isinstance(number, bool) for pair in pairs for number in pair)


def _takes(metric: Measure) -> str:
    parameters = [_describe(key, info) for key, info in metric.SUPPORTED_PARAMS.items()]
    at = (
        f", and {metric.NAME}@x sets `{metric.AT_PARAM}`"
        if metric.AT_PARAM in metric.SUPPORTED_PARAMS
        else ""
    )
    return f"it takes {', '.join(parameters)}{at}" if parameters else "it takes no parameters"


def _describe(key: str, info: Any) -> str:
    kind = info.dtype.__name__ if isinstance(info.dtype, type) else "value"
    if info.choices is not NOT_PROVIDED:
        kind = " or ".join(map(repr, info.choices))
    least = " of at least 1" if key in _COUNTED else ""
    default = f", default {info.default!r}" if info.default not in (NOT_PROVIDED, None) else ""
    return f"{key} ({kind}{least}{default})"
