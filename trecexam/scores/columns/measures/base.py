"""The declaration of a measure, its parameters, and shared functions: hits, relevant passages, log2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from ir_measures import Measure
from ir_measures.providers.base import NOT_PROVIDED
from numpy.typing import NDArray

from trecexam.errors import MeasureError
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import Hits

#: A number for each query, float64.
Values = NDArray[np.float64]
#: Gives a measure's values from the hits of a run; made once for its judgments.
Computation = Callable[[Hits], Values]


def depth_of(measure: Measure) -> int | None:
    """The depth of a measure: its cutoff, unless unjudged hits are left out first."""
    return None if measure.params.get("judged_only") else measure.params.get("cutoff")


@dataclass(frozen=True)
class ColumnMeasure:
    """A measure that is computed on columns.

    Attributes:
        name: as ir_measures has it.
        parameters: the names of those that it heeds.
        computation: works out what depends on the judgments alone, and gives the function that is left.
        documented: the parameters and their values, in the table of examples/reference/measures.md.
        depends_on_pool: whether a run's value may change with the other runs, though its own labels stay: it
            is divided by, or compared with, something of the pool. Or the parameter that makes it so.
        takes: False for values of parameters that are not computed here.
        depth: how many ranks it looks at; None for all.
        on_items: it needs rows that name items.
    """

    name: str
    parameters: frozenset[str]
    computation: Callable[[Measure, Judged], Computation]
    documented: str
    depends_on_pool: bool | str = False
    takes: Callable[[Measure], bool] = lambda measure: True
    depth: Callable[[Measure], int | None] = depth_of
    on_items: bool = False


def considered(measure: Measure, hits: Hits) -> Hits:
    """The hits for the measure, given its parameters `judged_only` and `cutoff`."""
    if measure.params.get("judged_only"):
        hits = hits.judged_only()
    return hits.top(measure.params.get("cutoff"))


def n_relevant(judged: Judged, rel: int) -> NDArray[np.int64]:
    """Return each query's number of passages with a label of `rel` or better, at least 1."""
    so_far = np.concatenate(([0], np.cumsum(judged.labels >= rel)))
    return np.asarray(np.diff(so_far[judged.offsets]), np.int64)


def ratio(above: NDArray[Any], below: NDArray[Any]) -> Values:
    """above / below as float64; 0 if below is 0."""
    values = np.zeros(len(above), np.float64)
    np.divide(above, below, out=values, where=np.asarray(below) != 0)
    return values


def last_sum(terms: Values) -> Values:
    """Sums of rows, added from left to right like a C loop (numpy adds pairwise)."""
    sums: Values = np.cumsum(terms, axis=1)
    return sums[:, -1] if terms.shape[1] else np.zeros(len(terms), np.float64)


def discounts(length: int) -> Values:
    """log2(rank + 2) of the ranks 0, 1, ...; at least `length` of them.

    From C's log2, which trec_eval calls: numpy's own differs in the last bit on some processors.
    """
    return _discounts(1 << max(length - 1, 31).bit_length())


@lru_cache(maxsize=8)
def _discounts(length: int) -> Values:
    return np.array([math.log2(rank + 2) for rank in range(length)], np.float64)


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
        MeasureError: with the reason, and what the measure takes.
    """
    for key in metric.params:
        if key not in metric.SUPPORTED_PARAMS:
            raise MeasureError(f"{metric.NAME} has no parameter `{key}`; {_takes(metric)}")
    for key, info in metric.SUPPORTED_PARAMS.items():
        value = metric.params.get(key, NOT_PROVIDED)
        needed = info.required or (key == "cutoff" and metric.NAME in DIVERSITY)
        if value is NOT_PROVIDED:
            if needed:
                raise MeasureError(f"{metric.NAME} needs its parameter `{key}`; {_takes(metric)}")
            continue
        boolean = isinstance(value, bool) and info.dtype is not bool
        outside = key in _COUNTED and isinstance(value, int) and not 1 <= value <= _MAX_INT
        if key == "gains" and not _are_whole(value):
            raise MeasureError(f"{metric.NAME}: gains={value!r} is not possible: give whole numbers")
        if boolean or outside or not info.validate(value):  # type: ignore[no-untyped-call]
            raise MeasureError(f"{metric.NAME}: {key}={value!r} is not possible; {_takes(metric)}")
    if metric.NAME in DIVERSITY and metric.params.get("cutoff", 1) > NDEVAL_DEPTH:
        raise MeasureError(f"{metric}: ndeval, which computes it, takes cutoffs up to {NDEVAL_DEPTH}")
    if metric.NAME in DIVERSITY and metric.params.get("judged_only"):
        raise MeasureError(f"{metric}: ir_measures cannot compute diversity measures with judged_only")
    try:
        metric.validate_params()  # type: ignore[no-untyped-call]
    except AssertionError as error:
        raise MeasureError(f"{metric.NAME}: {error}; {_takes(metric)}") from None


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
