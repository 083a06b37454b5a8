"""Values query by query as a table."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from trecexam.scores.values import MeasureValues
from trecexam.tables.table import Table, Value


def per_query_table(
    values: MeasureValues, measures: Sequence[str], runs: Sequence[str] | None = None
) -> Table:
    """`run query_id measure value`, sorted by run (None for all), then query, then the measures' order."""
    runs, query_ids = sorted(values.runs if runs is None else runs), sorted(values.query_ids)
    stacked = np.stack([values.matrix(name, runs, query_ids) for name in measures], axis=2)
    keys = itertools.product(runs, query_ids, measures)
    rows: list[tuple[Value, ...]] = [
        (*key, value) for key, value in zip(keys, stacked.ravel().tolist(), strict=True)
    ]
    return Table(("run", "query_id", "measure", "value"), tuple(rows))
