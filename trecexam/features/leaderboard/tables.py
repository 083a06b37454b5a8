"""The tables of the outputs, and of the commands that show the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    """The leaderboard's JSON twin: full precision, files, answered queries.

    Args:
        files: run -> its file, as people see it.
        human: how much of the labels people gave, and who.
    """
    return {
        "measures": list(board.measures),
        "n_queries": board.n_queries,
        "average": board.average,
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
    values: Mapping[str, Mapping[str, Mapping[str, float]]], measures: Sequence[str]
) -> Table:
    """`run query_id measure value`, sorted by run, then query, then the measures' order."""
    rows: list[tuple[Value, ...]] = [
        (run, query_id, name, values[run][query_id][name])
        for run in sorted(values)
        for query_id in sorted(values[run])
        for name in measures
    ]
    return Table(("run", "query_id", "measure", "value"), tuple(rows))
