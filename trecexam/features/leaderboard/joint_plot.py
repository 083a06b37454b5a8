"""The leaderboard of several graders as a picture: a row a run, and a panel for each column."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.joint import boards_of, track_leaderboard
from trecexam.line.diagnostics import NO_RUNS, nothing_graded
from trecexam.line.loaded_track import LoadedTrack
from trecexam.scores.leaderboard import first_column, interval
from trecexam.tables.plots.limits import squeezing
from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.rows import EDGE, draw_rows
from trecexam.tables.plots.style import NAMED, WIDTH, letters
from trecexam.tables.table import Table, Value
from trecexam.tables.terminal import cut
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Inches that a run takes, a line of a label, what else is around the runs, and all of it at most: a page.
_ROW, _LINE, _AROUND, _MOST = 0.155, 0.14, 0.57, 8.2
#: The share of the width that panels have, and the inches that a number below one takes.
_PLOTTED, _TICK = 0.7, 0.4
#: Columns of the table for each panel.
_OF_EACH = ("", ".stderr", ".low", ".high")


def joint_plot(track: LoadedTrack, measure: str | None = None) -> Plot:
    """The runs by the columns of the joint leaderboard.

    Args:
        measure: `NAME:MEASURE`, for a panel of this one alone.

    Raises:
        TrecexamError, ValueError: see `track_leaderboard`; or there are no runs.
    """
    measures = None if measure is None else [measure]
    board = track_leaderboard(track, measures)
    if not board.rows:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    if not board.has_scores:
        raise TrecexamError(nothing_graded(track.first), path=track.folder.root)
    columns = board.measures[: board._n_shown]
    n_queries = {
        name: {row.run: row.n_queries for row in grader_board.rows}
        for name, grader_board in boards_of(track, measures).items()
    }
    rows: list[tuple[Value, ...]] = []
    for rank, row in zip(board.ranks, board.rows, strict=True):
        cells: list[Value] = []
        for column, score in zip(columns, row.scores, strict=False):
            n = n_queries[column.partition(":")[0]].get(row.run, 0)
            cells += (score.mean, score.stderr, *interval(score, n, measure=column))
        rows.append((rank, row.run, *cells))
    best = board.rows[0]
    # Of the columns that are drawn, the one that orders the runs.
    first = columns[min(first_column(best), len(columns) - 1)]
    means = np.array([list(row[2::4]) for row in rows], float)
    edge = any(squeezing(values[np.isfinite(values)]).any() for values in means.T)
    n_lines = 1 + max(_label(column).count("\n") for column in columns)
    ranked = "; the numbers at the side are ranks" if len(rows) > NAMED else ""
    return Plot(
        "leaderboard",
        f"Leaderboard of all graders, by {first}",
        f"Mean over each grader's queries and its 95% interval (Student's t over queries){ranked}. No dot: "
        "the grader does not look at the run, or has graded nothing. Intervals that overlap do not say that "
        f"two runs are equally good: runs answer the same queries.{EDGE if edge else ''}",
        f"{plural(len(rows), 'run')} by {plural(len(columns), 'column')}: {', '.join(columns)}; the first by "
        f"{first} is {cut(best.run, 60)}.",
        Table(("rank", "run", *(f"{column}{of}" for column in columns for of in _OF_EACH)), tuple(rows)),
        _draw,
        Size(WIDTH, min(_MOST, _AROUND + _LINE * n_lines + _ROW * max(len(rows), 3)), rows=True),
        {f"panel {n}": column for n, column in enumerate(columns)},
    )


def _label(column: str) -> str:
    """Return the label of a panel, broken where a heading is."""
    return "\n".join(re.split(r"(?<=:)|(?<=.)(?=[(@])", column))


def _draw(figure: Figure, plot: Plot) -> None:
    from matplotlib.ticker import MaxNLocator

    rows, names = plot.table.rows, list(plot.settings.values())
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    most = max(2, int(_PLOTTED * figure.get_figwidth() / len(names) / _TICK))
    locator = MaxNLocator(most, min_n_ticks=2)
    for n, (axes, name) in enumerate(zip(panels, names, strict=True)):
        mean, low, high = (np.array([row[2 + 4 * n + of] for row in rows], float) for of in (0, 2, 3))
        draw_rows(axes, [str(row[1]) for row in rows], mean, low, high)
        axes.set_xlabel(_label(str(name)), fontsize=letters(7))
        low_end, high_end = axes.get_xlim()
        ticks = [tick for tick in locator.tick_values(low_end, high_end) if low_end <= tick <= high_end]
        # Numbers need room beside each other.
        axes.set_xticks(ticks if len(ticks) <= most else ticks[:: len(ticks) - 1])
        axes.tick_params(axis="x", labelsize=letters(7))
        axes.label_outer()
