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
    place = {one.run: number for number, one in enumerate(sorted(outliers, key=lambda one: one.run))}
    rows: list[tuple[str | float, ...]] = []
    for one in outliers:
        row = place[one.run]
        ours = score(rubric[row].tolist())
        if official.ndim == 2:
            found = score(official[row].tolist())
            theirs = (found.mean, *interval(found, official.shape[1]))
        else:
            theirs = (-float(official[row]), math.nan, math.nan)
        mine = (ours.mean, *interval(ours, rubric.shape[1]))
        rows.append((one.run, *mine, *theirs, one.rubric_rank, one.official_rank, one.difference))
    ranks = official.ndim == 1
    said = "" if correlation is None or math.isnan(correlation.kendall_tau) else _said(correlation)
    far = outliers[0] if outliers else None
    orange = any(abs(one.difference) >= _FAR for one in outliers)
    named = " Orange runs are the furthest from the diagonal, by rank; all are in outliers.tsv."
    apart = (
        f" The run furthest from the diagonal is {cut(far.run, 60)}, {abs(far.difference):g} ranks apart."
        if far is not None and far.difference
        else ""
    )
    return Plot(
        "scatter",
        f"Automatic against official: {measure} and {'official rank' if ranks else official_measure}",
        f"Each dot is a run; lines are 95% intervals over queries. {said}{named * orange}",
        f"{len(rows)} runs. {said}{apart}",
        Table((*_COLUMNS, "rubric_rank", "official_rank", "difference"), tuple(rows)),
        _draw,
        {"x": "official rank" if ranks else f"{official_measure} on official judgments", "y": measure}
        | {"ranks": int(ranks)},
    )


def _said(found: Correlation) -> str:
    line = f"Kendall's tau {found.kendall_tau:.2f}"
    if not math.isnan(found.tau_low):
        line += f" (95% interval {found.tau_low:.2f} to {found.tau_high:.2f})"
    return line + "."


def _draw(figure: Figure, plot: Plot) -> None:
    figure.set_size_inches(WIDTH, 3.8)
    axes = figure.subplots()
    rows = plot.table.rows
    ours, low, high, theirs, left, right = (np.array([row[c] for row in rows], float) for c in range(1, 7))
    axes.vlines(theirs, low, high, color=GRID, linewidth=0.7)
    axes.hlines(ours, left, right, color=GRID, linewidth=0.7)
    far = np.array([n < _NAMED and abs(float(row[9] or 0)) >= _FAR for n, row in enumerate(rows)], bool)
    axes.plot(theirs[~far], ours[~far], "o", color=BLUE, markersize=4, markeredgewidth=0)
    axes.plot(theirs[far], ours[far], "D", color=ORANGE, markersize=4.5, markeredgewidth=0)
    if plot.settings["ranks"]:
        axes.invert_xaxis()
    axes.set_xlabel(str(plot.settings["x"]))
    axes.set_ylabel(str(plot.settings["y"]))
    grid(axes)
    figure.draw_without_rendering()
    shown = range(len(rows)) if len(rows) <= _FEW else np.flatnonzero(far).tolist()
    _name(axes, [(short(str(rows[n][0])), theirs[n], ours[n]) for n in shown], np.stack((theirs, ours), 1))


def _name(axes: Axes, dots: Sequence[tuple[str, float, float]], others: NDArray[np.float64]) -> None:
    """Names beside dots, each where it leaves the picture and covers another name or dot least."""
    points = axes.figure.dpi / 72
    frame = axes.bbox
    taken: list[tuple[float, float, float, float]] = []
    # A dot is as if its square were taken.
    taken += [(x - 2, y - 2, x + 2, y + 2) for x, y in axes.transData.transform(others) / points]
    for name, x, y in dots:
        across, up = axes.transData.transform((x, y)) / points
        width = _LETTER * columns(name)
        places: list[tuple[float, int, bool, int, tuple[float, float, float, float]]] = []
        for left in (False, True):
            for above in (4, -9, 15, -20):
                start = across - 6 - width if left else across + 6
                box = (start, up + above, start + width, up + above + 8)
                outside = max(0.0, frame.x0 / points - box[0], box[2] - frame.x1 / points)
                overlaps = sum(_common(box, other) for other in taken)
                places.append((outside + overlaps, len(places), left, above, box))
        _, _, left, above, box = min(places)
        taken.append(box)
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


def _common(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """The area that two boxes share."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)
