"""The leaderboard as the report has it, and values query by query, as tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trecexam.features.leaderboard.differences import Differences
from trecexam.scores.leaderboard import Leaderboard, interval
from trecexam.scores.values import MeasureValues
from trecexam.tables.excerpt import shown
from trecexam.tables.table import Layout, Table, Value


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


def reported_table(board: Leaderboard, compared: Differences | None, baseline: Differences | None) -> Table:
    """A row a run: its group, of each measure the mean and its 95% interval, and the queries it answered.

    Args:
        compared: all pairs of runs; None for no groups.
        baseline: the runs against one; its differences are `MEASURE.against`, as texts.
    """
    against = [] if baseline is None else [_against(of.of_baseline()) for of in baseline.measures]

    def values(place: int) -> Iterator[Value]:
        row = board.rows[place]
        yield from (row.run, *(() if compared is None else (compared.groups.get(row.run),)))
        for at, score in enumerate(row.scores):
            yield from (score.mean, *interval(score, row.n_queries))
            yield from (texts.get(row.run) for texts in against[at : at + 1])
        yield row.n_answered

    ends = ("", ".low", ".high", *((".against",) if against else ()))
    columns = [f"{name}{end}" for name in board.measures for end in ends]
    header = ("run", *(() if compared is None else ("group",)), *columns, "answered")
    rows = tuple(tuple(values(place)) for place in range(len(board.rows)))
    return Table(header, rows, layout=Layout(("run",), ranks=tuple(range(1, len(rows) + 1))))


def _against(baseline: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Run -> its difference from the baseline, with p value and sign."""
    signs = {run: "▲" if of["difference"] > 0 else "▼" for run, of in baseline.items() if of["reject"]}
    p = {run: shown(of["p-value corrected"]) or "–" for run, of in baseline.items()}  # noqa: RUF001
    return {
        run: f"{of['difference']:+.3f}, p {p[run]} {signs.get(run, '')}".rstrip()
        for run, of in baseline.items()
    }
