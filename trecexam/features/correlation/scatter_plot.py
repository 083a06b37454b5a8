"""Plot of runs: automatic against official leaderboard."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trecexam.features.correlation.paired_scores import PairedScores, paired_scores
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.official import of_leaderboard
from trecexam.results.plots.style import BLUE, GRID, MUTED, ORANGE, end_at_one, fitted, grid, letters
from trecexam.results.result import Plot
from trecexam.results.table import Table
from trecexam.results.terminal import cut
from trecexam.scores.correlation import Correlation, correlate
from trecexam.scores.leaderboard import interval, score
from trecexam.scores.rank_correlation import Floats, QueryDraws, find_outliers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Maximum number of named runs furthest from the diagonal, and their minimum rank difference.
_NAMED, _FAR = 4, 3
#: Up to this number of runs, all are named.
_FEW = 10
_COLUMNS = ("run", "rubric", "rubric.low", "rubric.high", "official", "official.low", "official.high")


def scatter_of(track: GradedTrack, measure: str | None = None, official_measure: str | None = None) -> Plot:
    """Return the plot "scatter" by these measures; None means the track's first measures."""
    rubric, official = (None if name is None else [name] for name in (measure, official_measure))
    scores = paired_scores(track, rubric, official)[0]
    draws, ranks = QueryDraws(), scores.of_ranks
    return scatter_plot(scores, correlate(scores.rubric, scores.official, draws=draws, ranks=ranks))


def scatter_plot(scores: PairedScores, correlation: Correlation | None) -> Plot:
    """Return the runs' means on both sides.

    Args:
        correlation: the correlation of the two sides, if defined.
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
        3.8,
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
        # Place names after the axes have their final size.
        layout.execute(figure)
    named = np.flatnonzero(far | (len(rows) <= _FEW)).tolist()
    names = fitted(axes, [str(rows[n][0]) for n in named])
    _name_dots(axes, names, np.stack((x, y), axis=1), named)


#: Directions from a dot to its name, right first, and the distance in points.
_TURNS = np.radians([0, 180, 25, -25, 155, -155, 45, -45, 135, -135, 65, -65, 115, -115, 90, -90])
_AWAY = (5.0, 20.0, 40.0, 80.0)
#: Half a dot and the margin of a name, in points.
_DOT, _ROOM = 2.5, 1.5


def _name_dots(axes: Axes, names: Sequence[str], dots: Floats, named: Sequence[int]) -> None:
    """Write names beside dots into axes of fixed limits and size, most important name first.

    A name stays inside the axes, overlaps no dot or name, and has a line to its dot. A name without such a
    position is left out.

    Args:
        dots: all dots of the axes, shape (n, 2), in the axes' data.
        named: the index of each name's dot.
    """
    from matplotlib.text import Text

    points = axes.figure.dpi / 72
    frame = np.array(axes.bbox.extents) / points
    centres = axes.transData.transform(dots) / points
    ways = np.stack((np.cos(_TURNS), np.sin(_TURNS)), axis=1)
    # Directions end on a square, so that the middle or corner of a name's side is nearest.
    ways /= np.abs(ways).max(axis=1, keepdims=True)
    covered = _boxes(centres, _DOT)
    arrow = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
    for name, dot in zip(names, named, strict=True):
        annotation = axes.annotate(
            name,
            tuple(dots[dot]),
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=letters(8),
            annotation_clip=False,
            arrowprops=arrow,
        )
        # The layout must not make room for the name.
        annotation.set_in_layout(False)
        half = np.array(Text.get_window_extent(annotation).size) / points / 2 + _ROOM
        offsets = np.concatenate([ways * (half + away) for away in _AWAY])
        boxes = _boxes(centres[dot] + offsets, half)
        meets = (boxes[:, None, :2] < covered[:, 2:]) & (covered[:, :2] < boxes[:, None, 2:])
        inside = (boxes[:, :2] >= frame[:2]) & (boxes[:, 2:] <= frame[2:])
        free = inside.all(axis=1) & ~np.any(meets.all(axis=2), axis=1)
        if free.any():
            annotation.xyann = tuple(offsets[free.argmax()])
            covered = np.vstack((covered, boxes[free.argmax()]))
        else:
            annotation.remove()


def _boxes(centres: Floats, half: Floats | float) -> Floats:
    """Return boxes (x0, y0, x1, y1) around their centres."""
    return np.concatenate((centres - half, centres + half), axis=-1)
