"""The tables of the outputs, and of the commands that show the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from trecexam.scores.values import MeasureValues
from trecexam.tables.table import Table, Value

if TYPE_CHECKING:
    from trecexam.scores.leaderboard import Leaderboard


def leaderboard_table(board: Leaderboard) -> Table:
    """`run`, then each measure and its standard error, best run first."""
    columns = [column for name in board.measures for column in (name, f"{name}.stderr")]
    rows: Iterable[tuple[Value, ...]] = (
        (row.run, *(value for score in row.scores for value in (score.mean, score.stderr)))
        for row in board.rows
    )
    return Table(("run", *columns), tuple(rows))


def leaderboard_json(board: Leaderboard, files: Mapping[str, str], human: Any) -> dict[str, Any]:
    """The leaderboard's JSON twin: full precision, cautions, files, answered queries.

    Args:
        files: run -> its file, as people see it.
        human: how much of the labels people gave, and who.
    """
    return {
        "measures": list(board.measures),
        "n_queries": board.n_queries,
        "average": board.average,
        "cautions": list(board.cautions),
        "human_ratings": human,
        "runs": [
            {
                "run": row.run,
                "file": files[row.run],
                "n_answered": row.n_answered,
                "scores": {
                    name: {"mean": score.mean, "stderr": score.stderr}
                    for name, score in zip(board.measures, row.scores, strict=True)
                },
            }
            for row in board.rows
        ],
    }


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
