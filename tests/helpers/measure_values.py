"""Values of measures from mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trecexam.scores.values import MeasureValues


def values_of(
    values: Mapping[str, Mapping[str, Mapping[str, float]]], measures: Sequence[str] = ()
) -> MeasureValues:
    """Values from run -> query_id -> measure -> value; all runs have the same queries and measures."""
    by_query = next(iter(values.values()), {})
    query_ids = tuple(by_query)
    names = tuple(measures) or tuple(next(iter(by_query.values()), ()))
    rows = [[[of_run[q][name] for name in names] for q in query_ids] for of_run in values.values()]
    array = np.array(rows, np.float64).reshape(len(values), len(query_ids), len(names))
    return MeasureValues(tuple(values), query_ids, names, array)
