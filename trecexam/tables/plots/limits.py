"""Axes on which few runs that are far from all others do not squeeze these."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trecexam.tables.plots.style import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Of fewer values than this none is far from the others, and of many no more than these.
_FEW, _MOST = 8, 3
#: How far within the frame what lies beyond it is marked, in inches.
_INSIDE = 0.06


def squeezing(values: ArrayLike) -> NDArray[np.bool_]:
    """Return which values squeeze the others.

    They are the fewest without which half of the range or less is left, and again while there are such; no
    more than three, and no more than a tenth.

    Args:
        values: shape (n,), finite.
    """
    array = np.asarray(values, np.float64)
    order = np.argsort(array, kind="stable")
    ranked, first, end = array[order], 0, len(array)
    left = min(_MOST, math.ceil(len(array) / 10)) if len(array) >= _FEW else 0
    out = 1
    while out <= left:
        n_kept = end - first - out
        spans = ranked[first + n_kept - 1 : end] - ranked[first : first + out + 1]
        start = int(spans.argmin())
        if 0 < spans[start] <= (ranked[end - 1] - ranked[first]) / 2:
            first, end = first + start, first + start + n_kept
            left, out = left - out, 0
        out += 1
    outside = np.ones(len(array), np.bool_)
    outside[order[first:end]] = False
    return outside


def keep_within(axes: Axes, axis: Literal["x", "y"], values: ArrayLike) -> tuple[float, float]:
    """Set the limits of an axis to these values and a little room; values up to 1 end at 1 at most.

    Returns:
        The limits, the lower first.
    """
    array = np.asarray(values, np.float64)
    low, high = float(np.nanmin(array)), float(np.nanmax(array))
    room = 0.06 * (high - low)
    start, end = low - room, min(high + room, 1) if high <= 1 else high + room
    axes.set(**{f"{axis}lim": (start, end)})
    return start, end


def end_at_one(axes: Axes, axis: Literal["x", "y"]) -> None:
    """End an axis at 1 if no value is above 1, and draw marks at the end whole."""
    end, highest = (
        (axes.get_xlim()[1], axes.dataLim.x1) if axis == "x" else (axes.get_ylim()[1], axes.dataLim.y1)
    )
    if highest <= 1 < end:
        axes.set(**{f"{axis}lim": (None, 1)})
    for line in axes.lines:
        # A line without a mark has no extent, which a layout could not do with.
        line.set_clip_on(np.size(line.get_xdata()) == 0)


def mark_at_edge(axes: Axes, x: float, y: float, *, beyond: tuple[int, int], color: str = MUTED) -> None:
    """Draw a triangle at the frame for a dot beyond it.

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
