"""Plot of runs: automatic against official leaderboard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from trecexam.features.correlation.paired_scores import PairedScores, paired_scores
from trecexam.line.assessment import Assessment
from trecexam.scores.correlation import Correlation, correlate
from trecexam.scores.leaderboard import interval, score
from trecexam.scores.rank_correlation.ranks import Floats, find_outliers
from trecexam.scores.rank_correlation.resampling import QueryDraws
from trecexam.tables.plots.labels import DotName, name_dots
from trecexam.tables.plots.limits import end_at_one, keep_within, mark_at_edge, squeezing
from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.style import BLUE, GRID, ORANGE, WIDTH, fitted, grid
from trecexam.tables.table import Table
from trecexam.tables.terminal import cut

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: So many of the runs furthest from the diagonal have their names beside them, if they are so many ranks off.
_NAMED, _FAR = 4, 3
#: So many of those beyond the axes are named.
_BEYOND = 6
#: Of no more runs than this all are named.
_FEW = 10
_COLUMNS = ("run", "rubric", "rubric.low", "rubric.high", "official", "official.low", "official.high")


def scatter_of(track: Assessment, measure: str | None = None, official_measure: str | None = None) -> Plot:
    """Return the plot "scatter" by these measures.

    Raises:
        TrecexamError: there is nothing to compare.
        ValueError: a measure cannot be computed.
    """
    rubric, official = (None if name is None else [name] for name in (measure, official_measure))
    scores = paired_scores(track, rubric, official, first=True)[0]
    draws, ranks = QueryDraws(), scores.of_ranks
    return scatter_plot(scores, correlate(scores.rubric, scores.official, draws=draws, ranks=ranks))


def scatter_plot(scores: PairedScores, correlation: Correlation | None) -> Plot:
    """Return the runs' means on both sides.

    Args:
        correlation: of the two sides, where there is one.
    """
    measure, official_measure, official = scores.measure, scores.official_measure, scores.official
    outliers = find_outliers(scores.runs, scores.rubric, official)
    row_of_run = {run: row for row, run in enumerate(scores.runs)}
    rows: list[tuple[str | float, ...]] = []
    for outlier in outliers:
        row = row_of_run[outlier.run]
        ends: list[str | float] = [outlier.run, *_mean(measure, scores.rubric[row])]
        if official.ndim == 2:
            ends += _mean(official_measure, official[row])
        else:
            ends += (-float(official[row]), math.nan, math.nan)
        rows.append((*ends, outlier.rubric_rank, outlier.official_rank, outlier.difference))
    ranks = official.ndim == 1
    coefficient = ""
    if correlation is not None and not math.isnan(correlation.kendall_tau.value):
        coefficient = _tau_line(correlation)
    far = outliers[0] if outliers else None
    orange = any(abs(outlier.difference) >= _FAR for outlier in outliers)
    named = " Orange runs are the furthest from the diagonal, by rank."
    # The columns of both means.
    squeezed = any(squeezing([row[column] for row in rows]).any() for column in (1, 4))
    beyond = " Triangles at the edge are runs beyond it, with their official and automatic value." * squeezed
    apart = (
        f" The run furthest from the diagonal is {cut(far.run, 60)}, {abs(far.difference):g} ranks apart."
        if far is not None and far.difference
        else ""
    )
    return Plot(
        "scatter",
        f"Automatic against official: {measure} and {'official rank' if ranks else official_measure}",
        f"Each dot is a run; lines are 95% intervals over queries. {coefficient}{named * orange}{beyond}",
        f"{len(rows)} runs. {coefficient}{apart}",
        Table((*_COLUMNS, "rubric_rank", "official_rank", "difference"), tuple(rows)),
        _draw,
        Size(WIDTH, 3.8),
        {"x": "official rank" if ranks else f"{official_measure} on official judgments", "y": measure}
        | {"ranks": int(ranks)},
    )


def _mean(measure: str, values: Floats) -> tuple[float, float, float]:
    """Return the mean of a run's values and the ends of its 95% interval."""
    of_run = score(values.tolist())
    return (of_run.mean, *interval(of_run, len(values), measure=measure))


def _tau_line(correlation: Correlation) -> str:
    line = f"Kendall's tau {correlation.kendall_tau.value:.2f}"
    if not math.isnan(correlation.kendall_tau.low):
        line += f" (95% interval {correlation.kendall_tau.low:.2f} to {correlation.kendall_tau.high:.2f})"
    return line + "."


def _draw(figure: Figure, plot: Plot) -> None:
    axes = figure.subplots()
    rows = plot.table.rows
    y, low, high, x, left, right = (np.array([row[c] for row in rows], float) for c in range(1, 7))
    beyond_x, beyond_y = squeezing(x), squeezing(y)
    beyond = beyond_x | beyond_y
    axes.vlines(x[~beyond], low[~beyond], high[~beyond], color=GRID, linewidth=0.7)
    axes.hlines(y[~beyond], left[~beyond], right[~beyond], color=GRID, linewidth=0.7)
    far = np.array([n < _NAMED and abs(float(row[9] or 0)) >= _FAR for n, row in enumerate(rows)], bool)
    for chosen, marker, colour, size in ((~far, "o", BLUE, 4.0), (far, "D", ORANGE, 4.5)):
        within = chosen & ~beyond
        axes.plot(x[within], y[within], marker, color=colour, markersize=size, markeredgewidth=0)
    # Runs beyond an axis are at its edge.
    at = np.stack((x, y), axis=1)
    if beyond_x.any():
        at[:, 0] = at[:, 0].clip(*keep_within(axes, "x", [ends[~beyond] for ends in (x, left, right)]))
    if beyond_y.any():
        at[:, 1] = at[:, 1].clip(*keep_within(axes, "y", [ends[~beyond] for ends in (y, low, high)]))
    end_at_one(axes, "x")
    end_at_one(axes, "y")
    ranks = bool(plot.settings["ranks"])
    if ranks:
        axes.invert_xaxis()
    for n in np.flatnonzero(beyond).tolist():
        across, up = np.sign((x[n], y[n]) - at[n])
        mark_at_edge(
            axes, *at[n], beyond=(-across if ranks else across, up), color=ORANGE if far[n] else BLUE
        )
    axes.set_xlabel(str(plot.settings["x"]))
    axes.set_ylabel(str(plot.settings["y"]))
    grid(axes)
    layout = figure.get_layout_engine()
    if layout is not None:
        # Names are placed in axes of their final size.
        layout.execute(figure)
    few = len(rows) <= _FEW
    named = [*np.flatnonzero(beyond).tolist()[:_BEYOND], *np.flatnonzero(~beyond & (far | few)).tolist()]
    names = fitted(axes, [str(rows[n][0]) for n in named])
    dot_names = [
        DotName(f"{name} ({x[n]:{'g' if ranks else '.2f'}}, {y[n]:.2f})" if beyond[n] else name, *at[n])
        for n, name in zip(named, names, strict=True)
    ]
    name_dots(axes, dot_names, at)
