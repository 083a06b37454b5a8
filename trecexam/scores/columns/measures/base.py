"""The declaration of a measure, and shared functions: hits, relevant passages, trec_eval's log2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import Hits

#: A number for each query, float64.
Values = NDArray[np.float64]
#: Gives a measure's values from the hits of a run; made once for its judgments.
Computation = Callable[[Hits], Values]


def depth_of(measure: Measure) -> int | None:
    """The depth of a measure: its cutoff, unless unjudged hits are left out first."""
    return None if measure.params.get("judged_only") else cutoff_of(measure)


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


def cutoff_of(measure: Measure) -> int | None:
    """The measure's cutoff, or None."""
    cutoff: int | None = measure.params.get("cutoff")
    return cutoff


def considered(measure: Measure, hits: Hits) -> Hits:
    """The hits for the measure, given its parameters `judged_only` and `cutoff`."""
    if measure.params.get("judged_only"):
        hits = hits.judged_only()
    return hits.top(cutoff_of(measure))


def n_relevant(judged: Judged, rel: int) -> NDArray[np.int64]:
    """Each query's number of passages with a label of `rel` or better, at least 1."""
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
