"""Values with their intervals, a row each: leaderboards and abilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.tables.plots.limits import end_at_one, keep_within, mark_at_edge, squeezing
from trecexam.tables.plots.style import BLUE, MUTED, NAMED, grid, label_rows, letters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Floats = NDArray[np.float64]

#: What a caption says of plots where a row is beyond the edge.
EDGE = " A triangle at the edge means a value beyond it, which is beside it."


def draw_rows(axes: Axes, names: Sequence[str], values: Floats, low: Floats, high: Floats) -> None:
    """Draw a dot and its interval in each row; a dot that would squeeze the others is marked at the edge.

    Args:
        values: a row each; NaN for none.
        low, high: the ends of their intervals; NaN for none.
    """
    row_indices, few = np.arange(len(names)), len(names) <= NAMED
    has_value = np.isfinite(values)
    outside = np.zeros(len(values), np.bool_)
    outside[has_value] = squeezing(values[has_value])
    inside = has_value & ~outside
    axes.hlines(row_indices[inside], low[inside], high[inside], color=MUTED, linewidth=1.0 if few else 0.6)
    axes.plot(values[inside], row_indices[inside], "o", color=BLUE, markersize=4 if few else 2.5)
    if outside.any():
        left, right = keep_within(axes, "x", [*values[inside], *low[inside], *high[inside]])
        for row in np.flatnonzero(outside).tolist():
            above = bool(values[row] > right)
            edge = right if above else left
            mark_at_edge(axes, edge, row, beyond=(1 if above else -1, 0))
            axes.annotate(
                f"{values[row]:.2f}",
                (edge, row),
                xytext=(-12 if above else 12, 0),
                textcoords="offset points",
                ha="right" if above else "left",
                va="center",
                fontsize=letters(8),
            )
    end_at_one(axes, "x")
    label_rows(axes, names)
    axes.spines["left"].set_visible(False)
    grid(axes, "x")
