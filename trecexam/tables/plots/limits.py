"""Axes on which few runs that are far from all others do not squeeze these."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trecexam.tables.plots.style import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of fewer values than this none is far from the others.
_FEW = 8
#: How far within the frame what lies beyond it is marked, in inches.
_INSIDE = 0.06


def squeezing(values: ArrayLike) -> NDArray[np.bool_]:
    """Which values squeeze the others: the fewest, and at most a tenth, without which half of the range or
    less is left, on either side of it.

    Args:
        values: shape (n,), finite.
    """
    array = np.asarray(values, np.float64)
    n = len(array)
    order = np.argsort(array, kind="stable")
    ranked = array[order]
    for left_out in range(1, math.ceil(n / 10) + 1) if n >= _FEW else ():
        kept = n - left_out
        spans = ranked[kept - 1 :] - ranked[: left_out + 1]
        first = int(spans.argmin())
        if 0 < spans[first] <= (ranked[-1] - ranked[0]) / 2:
            outside = np.ones(n, np.bool_)
            outside[order[first : first + kept]] = False
            return outside
    return np.zeros(n, np.bool_)


def keep_within(axes: Axes, axis: Literal["x", "y"], values: ArrayLike) -> tuple[float, float]:
    """Sets the limits of an axis to these values, and a little room, in place of all that is drawn.

    Returns:
        The limits, the lower first.
    """
    array = np.asarray(values, np.float64)
    low, high = float(np.nanmin(array)), float(np.nanmax(array))
    room = 0.06 * (high - low)
    (axes.set_xlim if axis == "x" else axes.set_ylim)(low - room, high + room)
    return low - room, high + room


def mark_at_edge(axes: Axes, x: float, y: float, *, beyond: tuple[int, int], color: str = MUTED) -> None:
    """A triangle at the frame for what lies beyond it.

    Args:
        x, y: where, in the axes' data.
        beyond: (-1, 0 or 1 to the right, -1, 0 or 1 upwards): where to it points.
    """
    from matplotlib.transforms import ScaledTranslation

    turned = math.degrees(math.atan2(-beyond[0], beyond[1]))
    # Within the frame: beside it there are names.
    inwards = ScaledTranslation(-_INSIDE * beyond[0], -_INSIDE * beyond[1], axes.figure.dpi_scale_trans)
    axes.plot(
        [x],
        [y],
        marker=(3, 0, turned),
        color=color,
        markersize=6.5,
        markeredgewidth=0,
        transform=axes.transData + inwards,
        zorder=4,
    )
