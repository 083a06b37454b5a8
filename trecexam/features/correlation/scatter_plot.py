"""Plot of runs: automatic against official leaderboard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from trecexam.features.correlation.paired_scores import PairedScores, paired_scores
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.official import of_leaderboard
from trecexam.results.plots.model import Plot, Size
from trecexam.results.plots.style import BLUE, GRID, ORANGE, WIDTH, end_at_one, fitted, grid, name_dots
from trecexam.results.table import Table
from trecexam.results.terminal import cut
from trecexam.scores.correlation import Correlation, correlate
from trecexam.scores.leaderboard import interval, score
from trecexam.scores.rank_correlation.ranks import Floats, find_outliers
from trecexam.scores.rank_correlation.resampling import QueryDraws

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: So many of the runs furthest from the diagonal have their names beside them, if they are so many ranks off.
_NAMED, _FAR = 4, 3
#: Of no more runs than this all are named.
_FEW = 10
_COLUMNS = ("run", "rubric", "rubric.low", "rubric.high", "official", "official.low", "official.high")


def scatter_of(track: GradedTrack, measure: str | None = None, official_measure: str | None = None) -> Plot:
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
    measure, official, ranks = scores.measure, scores.official_measure, scores.of_ranks
    label = official if of_leaderboard(official) else f"{official} on official judgments"
    if ranks:
        label = official = "official rank"
    sign = -1 if ranks else 1
    outliers = find_outliers(scores.runs, scores.rubric, scores.official)
    values = dict(zip(scores.runs, zip(scores.rubric, scores.official, strict=True), strict=True))
    rows: list[tuple[str | float, ...]] = []
    for outlier in outliers:
        mine, theirs = values[outlier.run]
        # An official leaderboard has no values per query.
        mean = _mean(official, theirs) if theirs.ndim else (sign * float(theirs), math.nan, math.nan)
        far = outlier.rubric_rank, outlier.official_rank, outlier.difference
        rows.append((outlier.run, *_mean(measure, mine), *mean, *far))
    coefficient = furthest = ""
    if correlation is not None and not math.isnan((tau := correlation.kendall_tau).value):
        ends = "" if math.isnan(tau.low) else f" (95% interval {tau.low:.2f} to {tau.high:.2f})"
        coefficient = f" Kendall's tau {tau.value:.2f}{ends}."
    if outliers and outliers[0].difference:
        name, apart = cut(outliers[0].run, 60), abs(outliers[0].difference)
        furthest = f" The run furthest from the diagonal is {name}, {apart:g} ranks apart."
    orange = any(abs(outlier.difference) >= _FAR for outlier in outliers)
    named = " Orange runs are the furthest from the diagonal, by rank." * orange
    return Plot(
        "scatter",
        f"Automatic against official: {measure} and {official}",
        f"Each dot is a run; lines are 95% intervals over queries.{coefficient}{named}",
        f"{len(rows)} runs.{coefficient}{furthest}",
        Table((*_COLUMNS, "rubric_rank", "official_rank", "difference"), tuple(rows)),
        _draw,
        Size(WIDTH, 3.8),
        {"x": label, "y": measure, "ranks": ranks},
    )


def _mean(measure: str, values: Floats) -> tuple[float, float, float]:
    """Return the mean of a run's values and the ends of its 95% interval."""
    of_run = score(values.tolist())
    return (of_run.mean, *interval(of_run, len(values), measure=measure))


def _draw(figure: Figure, plot: Plot) -> None:
    axes = figure.subplots()
    rows = plot.table.rows
    y, low, high, x, left, right = (np.array([row[c] for row in rows], float) for c in range(1, 7))
    axes.vlines(x, low, high, color=GRID, linewidth=0.7)
    axes.hlines(y, left, right, color=GRID, linewidth=0.7)
    far = np.array([n < _NAMED and abs(float(row[9] or 0)) >= _FAR for n, row in enumerate(rows)], bool)
    for chosen, marker, colour, size in ((~far, "o", BLUE, 4.0), (far, "D", ORANGE, 4.5)):
        axes.plot(x[chosen], y[chosen], marker, color=colour, markersize=size, markeredgewidth=0)
    end_at_one(axes, "x")
    end_at_one(axes, "y")
    if plot.settings["ranks"]:
        axes.invert_xaxis()
    axes.set_xlabel(str(plot.settings["x"]))
    axes.set_ylabel(str(plot.settings["y"]))
    grid(axes)
    layout = figure.get_layout_engine()
    if layout is not None:
        # Names are placed in axes of their final size.
        layout.execute(figure)
    named = np.flatnonzero(far | (len(rows) <= _FEW)).tolist()
    names = fitted(axes, [str(rows[n][0]) for n in named])
    name_dots(axes, names, np.stack((x, y), axis=1), named)
