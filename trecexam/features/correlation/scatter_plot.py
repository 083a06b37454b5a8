"""The same runs on both leaderboards, the automatic one against the official one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.leaderboard import interval, score
from trecexam.tables.plots.model import Plot
from trecexam.tables.plots.style import BLUE, GRID, MUTED, ORANGE, WIDTH, grid, short
from trecexam.tables.table import Table
from trecexam.tables.terminal import columns, cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from trecexam.scores.correlation import Correlation
    from trecexam.scores.rank_correlation.outliers import Outlier

#: So many of the runs furthest from the diagonal have their names beside them, if they are so many ranks off.
_NAMED, _FAR = 4, 3
#: Of no more runs than this all are named.
_FEW = 10
#: How wide a letter of such a name is, in points.
_LETTER = 5.0
_COLUMNS = ("run", "rubric", "rubric.low", "rubric.high", "official", "official.low", "official.high")


def scatter_plot(
    measure: str,
    official_measure: str,
    rubric: NDArray[np.float64],
    official: NDArray[np.float64],
    outliers: Sequence[Outlier],
    correlation: Correlation | None,
) -> Plot:
    """The runs' means on both sides.

    Args:
        rubric: values of shape (n_runs, n_queries), of the runs in the order of their names.
        official: values of the same shape; or of an official leaderboard the negated ranks, shape (n_runs,).
        outliers: every run, furthest from the diagonal first.
        correlation: of the two sides.
    """
    place = {
        outlier.run: number
        for number, outlier in enumerate(sorted(outliers, key=lambda outlier: outlier.run))
    }
    rows: list[tuple[str | float, ...]] = []
    for outlier in outliers:
        row = place[outlier.run]
        rubric_score = score(rubric[row].tolist())
        if official.ndim == 2:
            official_score = score(official[row].tolist())
            official_interval = (official_score.mean, *interval(official_score, official.shape[1]))
        else:
            official_interval = (-float(official[row]), math.nan, math.nan)
        rubric_interval = (rubric_score.mean, *interval(rubric_score, rubric.shape[1]))
        rows.append(
            (
                outlier.run,
                *rubric_interval,
                *official_interval,
                outlier.rubric_rank,
                outlier.official_rank,
                outlier.difference,
            )
        )
    ranks = official.ndim == 1
    coefficient = "" if correlation is None or math.isnan(correlation.kendall_tau) else _tau_line(correlation)
    far = outliers[0] if outliers else None
    orange = any(abs(outlier.difference) >= _FAR for outlier in outliers)
    named = " Orange runs are the furthest from the diagonal, by rank; all are in outliers.tsv."
    apart = (
        f" The run furthest from the diagonal is {cut(far.run, 60)}, {abs(far.difference):g} ranks apart."
        if far is not None and far.difference
        else ""
    )
    return Plot(
        "scatter",
        f"Automatic against official: {measure} and {'official rank' if ranks else official_measure}",
        f"Each dot is a run; lines are 95% intervals over queries. {coefficient}{named * orange}",
        f"{len(rows)} runs. {coefficient}{apart}",
        Table((*_COLUMNS, "rubric_rank", "official_rank", "difference"), tuple(rows)),
        _draw,
        {"x": "official rank" if ranks else f"{official_measure} on official judgments", "y": measure}
        | {"ranks": int(ranks)},
    )


def _tau_line(correlation: Correlation) -> str:
    line = f"Kendall's tau {correlation.kendall_tau:.2f}"
    if not math.isnan(correlation.tau_low):
        line += f" (95% interval {correlation.tau_low:.2f} to {correlation.tau_high:.2f})"
    return line + "."


def _draw(figure: Figure, plot: Plot) -> None:
    figure.set_size_inches(WIDTH, 3.8)
    axes = figure.subplots()
    rows = plot.table.rows
    rubric_means, low, high, official_means, left, right = (
        np.array([row[c] for row in rows], float) for c in range(1, 7)
    )
    axes.vlines(official_means, low, high, color=GRID, linewidth=0.7)
    axes.hlines(rubric_means, left, right, color=GRID, linewidth=0.7)
    far = np.array([n < _NAMED and abs(float(row[9] or 0)) >= _FAR for n, row in enumerate(rows)], bool)
    axes.plot(official_means[~far], rubric_means[~far], "o", color=BLUE, markersize=4, markeredgewidth=0)
    axes.plot(official_means[far], rubric_means[far], "D", color=ORANGE, markersize=4.5, markeredgewidth=0)
    if plot.settings["ranks"]:
        axes.invert_xaxis()
    axes.set_xlabel(str(plot.settings["x"]))
    axes.set_ylabel(str(plot.settings["y"]))
    grid(axes)
    figure.draw_without_rendering()
    shown = range(len(rows)) if len(rows) <= _FEW else np.flatnonzero(far).tolist()
    _name(
        axes,
        [(short(str(rows[n][0])), official_means[n], rubric_means[n]) for n in shown],
        np.stack((official_means, rubric_means), 1),
    )


def _name(axes: Axes, dots: Sequence[tuple[str, float, float]], others: NDArray[np.float64]) -> None:
    """Names beside dots, each where it leaves the picture and covers another name or dot least."""
    points = axes.figure.dpi / 72
    frame = axes.bbox
    covered: list[tuple[float, float, float, float]] = []
    # A dot is as if its square were covered.
    covered += [(x - 2, y - 2, x + 2, y + 2) for x, y in axes.transData.transform(others) / points]
    for name, x, y in dots:
        across, up = axes.transData.transform((x, y)) / points
        width = _LETTER * columns(name)
        places: list[tuple[float, int, bool, int, tuple[float, float, float, float]]] = []
        for left in (False, True):
            for above in (4, -9, 15, -20):
                start = across - 6 - width if left else across + 6
                box = (start, up + above, start + width, up + above + 8)
                outside = max(0.0, frame.x0 / points - box[0], box[2] - frame.x1 / points)
                overlaps = sum(_common(box, other) for other in covered)
                places.append((outside + overlaps, len(places), left, above, box))
        _, _, left, above, box = min(places)
        covered.append(box)
        axes.annotate(
            name,
            (x, y),
            xytext=(-6 if left else 6, above),
            textcoords="offset points",
            ha="right" if left else "left",
            fontsize=8,
            # A name that is not right beside its dot is tied to it.
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2}
            if above in (15, -20)
            else None,
        )


def _common(box: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The area that two boxes share."""
    wide = min(box[2], other[2]) - max(box[0], other[0])
    high = min(box[3], other[3]) - max(box[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)
