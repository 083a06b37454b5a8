"""Plot of the leaderboard: a row per run; with several graders a panel per column."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from trecexam.errors import TrecexamError
from trecexam.features.leaderboard.board import boards_of, track_leaderboard
from trecexam.grades.diagnostics import NO_RUNS, nothing_graded
from trecexam.grades.evaluation import why_no_scores
from trecexam.grades.graded_track import LoadedTrack
from trecexam.results.plots.style import NAMED, draw_rows, letters
from trecexam.results.result import Plot
from trecexam.results.table import Table, Value
from trecexam.results.terminal import cut
from trecexam.results.text import plural
from trecexam.scores.leaderboard import Leaderboard, first_column, interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Heights in inches: of a run, of the margins, of a line of a panel's label, and the maximum.
_ROW, _AROUND, _LINE, _MOST = 0.155, 0.7, 0.14, 8.2
#: Share of the width for panels, and inches for a number below one.
_PLOTTED, _TICK = 0.7, 0.4
#: Columns of the plot's table for each panel.
_OF_EACH = ("", ".stderr", ".low", ".high")


def plot_of(track: LoadedTrack, measure: str | None = None) -> Plot:
    """Return the plot of runs by a measure (None: the first); with several graders, by all columns."""
    measures = None if measure is None else [measure]
    board = track_leaderboard(track, measures)
    if track.is_single:
        why = why_no_scores(track.first)
    else:
        why = None if board.has_scores else nothing_graded(track.first)
    if why or not board.rows:
        raise TrecexamError(why if why and board.rows else NO_RUNS, path=track.folder.root)
    return leaderboard_plot(board, {} if track.is_single else boards_of(track, measures))


def leaderboard_plot(board: Leaderboard, boards: Mapping[str, Leaderboard] = MappingProxyType({})) -> Plot:
    """Return the plot of a leaderboard with a row and a score.

    `boards` has the leaderboards of several graders by name; empty for a single grader.
    """
    columns = board.measures[: board._n_shown if boards else 1]
    n_queries = {name: {row.run: row.n_queries for row in of.rows} for name, of in boards.items()}
    rows: list[tuple[Value, ...]] = []
    for rank, row in zip(board.ranks, board.rows, strict=True):
        cells: list[Value] = [rank, row.run, *(() if boards else (row.n_queries,))]
        for column, score in zip(columns, row.scores, strict=False):
            n = n_queries[column.partition(":")[0]].get(row.run, 0) if boards else row.n_queries
            cells += (score.mean, score.stderr, *interval(score, n, measure=column))
        rows.append(tuple(cells))
    header = ("rank", "run", *(() if boards else ("n_queries",)))
    best = board.rows[0]
    # The drawn column that orders the runs.
    first = min(first_column(best), len(columns) - 1)
    over, unseen, panels = "queries", "", 0
    if boards:
        over = "each grader's queries"
        unseen = " No dot: the grader does not look at the run, or has graded nothing."
        panels = 1 + max(_label(column).count("\n") for column in columns)
    ranked = " The numbers at the side are ranks." if len(rows) > NAMED else ""
    return Plot(
        "leaderboard",
        f"Leaderboard {'of all graders, ' * bool(boards)}by {columns[first]}",
        f"Mean over {over} and its 95% interval (Student's t over queries).{unseen}{ranked} Intervals that "
        "overlap do not say that two runs are equally good: runs answer the same queries.",
        f"{plural(len(rows), 'run')} by {', '.join(columns)}; the best by {columns[first]} is "
        f"{cut(best.run, 60)} with {best.scores[first].mean:.3f}.",
        Table((*header, *(f"{column}{of}" for column in columns for of in _OF_EACH)), tuple(rows)),
        _draw,
        min(_MOST, _AROUND + _LINE * panels + _ROW * max(len(rows), 3)),
        {f"panel {n}": column for n, column in enumerate(columns)} if boards else {},
        rows=True,
    )


def _label(column: str) -> str:
    """Return the label of a panel, broken like a heading."""
    return "\n".join(re.split(r"(?<=:)|(?<=.)(?=[(@])", column))


def _draw(figure: Figure, plot: Plot) -> None:
    from matplotlib.ticker import MaxNLocator

    rows, columns = plot.table.rows, [*map(str, plot.settings.values())]
    runs, start = [str(row[1]) for row in rows], 2 if columns else 3
    panels = figure.subplots(1, max(len(columns), 1), sharey=True, squeeze=False)[0]
    for n, axes in enumerate(panels):
        mean, low, high = (np.array([row[start + 4 * n + of] for row in rows], float) for of in (0, 2, 3))
        draw_rows(axes, runs, mean, low, high)
        if not columns:
            axes.set_xlabel(plot.table.header[start])
            continue
        axes.set_xlabel(_label(columns[n]), fontsize=letters(7))
        most = max(2, int(_PLOTTED * figure.get_figwidth() / len(columns) / _TICK))
        low_end, high_end = axes.get_xlim()
        ticks = MaxNLocator(most, min_n_ticks=2).tick_values(low_end, high_end)
        ticks = [tick for tick in ticks if low_end <= tick <= high_end]
        # Leave room between numbers.
        axes.set_xticks(ticks if len(ticks) <= most else ticks[:: len(ticks) - 1])
        axes.tick_params(axis="x", labelsize=letters(7))
        axes.label_outer()
