"""The plot of how often each rating was given, including missing ratings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.style import NO_RATING, RATINGS, WIDTH, grid, letters
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The columns of counts, after the ratings 0..5.
WITHOUT = ("unparsed", "refused", "error", "no grade yet")
GRADES = (*map(str, range(len(RATINGS))), *WITHOUT)
_COLOURS = (*RATINGS, *NO_RATING)
#: Ratings are dark to bright; what is none is hatched too, so that no colour alone tells it.
_HATCH = (*(None for _ in RATINGS), "//", "..", "xx", "")


def grades_plot(counts: NDArray[np.int64]) -> Plot:
    """Plots the frequency of each grade.

    Args:
        counts: of shape (len(GRADES),).
    """
    total = int(counts.sum())
    rows = tuple(
        (name, int(count), int(count) / total) for name, count in zip(GRADES, counts.tolist(), strict=True)
    )
    shares_text = ", ".join(f"{name}: {share:.1%}" for name, count, share in rows if count)
    return Plot(
        "grades",
        "All grades",
        "The grader's own answers for every passage and item of the pool that has a text. People's ratings "
        "are not among them.",
        f"{total:,} cells. {shares_text}.",
        Table(("grade", "cells", "share"), rows),
        _draw_all,
        Size(
            WIDTH, 0.7 + 0.27 * sum(n < len(RATINGS) or row[1] > 0 for n, row in enumerate(rows)), rows=True
        ),
    )


def _draw_all(figure: Figure, plot: Plot) -> None:
    rows = [row for n, row in enumerate(plot.table.rows) if n < len(RATINGS) or row[1]]
    axes = figure.subplots()
    shares = [float(row[2] or 0) for row in rows]
    names = [str(row[0]) for row in rows]
    bars = axes.barh(names, shares, color=[_COLOURS[GRADES.index(name)] for name in names], height=0.75)
    for bar, row, name in zip(bars, rows, names, strict=True):
        bar.set(hatch=_HATCH[GRADES.index(name)], edgecolor="white", linewidth=0)
        share = float(row[2] or 0)
        axes.annotate(
            f"{row[1]:,} ({share:.1%})",
            (share, bar.get_y() + bar.get_height() / 2),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=letters(8),
        )
    axes.invert_yaxis()
    axes.set_xlim(0, min(1, max(shares) * 1.35))
    axes.set_xlabel("share of cells")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    grid(axes, "x")
