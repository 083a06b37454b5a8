"""The leaderboard: each run's mean with its interval, best on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trecexam.scores.leaderboard import interval
from trecexam.tables.plots.limits import squeezing
from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.rows import EDGE, draw_rows
from trecexam.tables.plots.style import NAMED, WIDTH
from trecexam.tables.table import Table
from trecexam.tables.terminal import cut

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from trecexam.scores.leaderboard import Leaderboard

#: Inches that a run takes, and all of them at most: a page in print.
_ROW, _MOST = 0.155, 8.2


def leaderboard_plot(board: Leaderboard) -> Plot:
    """The runs by the first measure. There must be one."""
    name = board.measures[0]
    rows = []
    for rank, row in enumerate(board.rows, 1):
        score = row.scores[0]
        rows.append((rank, row.run, row.n_queries, score.mean, score.stderr, *interval(score, row.n_queries)))
    best = board.rows[0]
    ranked = "" if len(rows) <= NAMED else "; the numbers at the side are ranks, names are in the table below"
    edge = EDGE if squeezing([row[3] for row in rows]).any() else ""
    return Plot(
        "leaderboard",
        f"Leaderboard by {name}",
        f"Mean over queries and its 95% interval (Student's t over queries){ranked}. Intervals that overlap "
        f"do not say that two runs are equally good: runs answer the same queries.{edge}",
        f"{len(rows)} runs by {name}; the best is {cut(best.run, 60)} with {best.scores[0].mean:.3f}.",
        Table(
            ("rank", "run", "n_queries", name, f"{name}.stderr", f"{name}.low", f"{name}.high"), tuple(rows)
        ),
        _draw,
        Size(WIDTH, min(_MOST, 0.7 + _ROW * max(len(rows), 3)), rows=True),
    )


def _draw(figure: Figure, plot: Plot) -> None:
    rows = plot.table.rows
    axes = figure.subplots()
    mean, low, high = (np.array([row[column] for row in rows], float) for column in (3, 5, 6))
    draw_rows(axes, [str(row[1]) for row in rows], mean, low, high)
    axes.set_xlabel(plot.table.header[3])
