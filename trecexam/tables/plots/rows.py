"""Values with their intervals, a row each: leaderboards and abilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.tables.plots.style import BLUE, MUTED, NAMED, end_at_one, grid, label_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Floats = NDArray[np.float64]


def draw_rows(axes: Axes, names: Sequence[str], values: Floats, low: Floats, high: Floats) -> None:
    """Draw a dot and its interval in each row.

    Args:
        values: a row each; NaN for none.
        low, high: the ends of their intervals; NaN for none.
    """
    row_indices, few = np.arange(len(names)), len(names) <= NAMED
    axes.hlines(row_indices, low, high, color=MUTED, linewidth=1.0 if few else 0.6)
    axes.plot(values, row_indices, "o", color=BLUE, markersize=4 if few else 2.5)
    end_at_one(axes, "x")
    label_rows(axes, names)
    axes.spines["left"].set_visible(False)
    grid(axes, "x")
