"""Names beside dots: none upon another, each at the nearest free place, with a line to its dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.results.plots.style import MUTED, Floats, letters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Beside the dot first, then above and below it; the right side before the left one.
_ANGLES = np.radians([0, 180, 25, -25, 155, -155, 45, -45, 135, -135, 65, -65, 115, -115, 90, -90])
#: In points: how far from its dot a name begins.
_AWAY = 5.0
#: Places further away are a grid: so many across the axes, and so many points from one line to the next.
_ACROSS, _LINE = 12, 6.0
#: A name goes so many points further rather than upon one more dot.
_COVERED = 15.0
#: In points: half a dot, the room around a name; and how many places of a line are looked at.
_DOT, _ROOM, _STEPS = 2.5, 1.5, 12


def name_dots(axes: Axes, names: Sequence[str], dots: Floats, named: Sequence[int]) -> None:
    """Write names into axes whose limits and size are settled, the most important first.

    A name lies within the axes, upon no other name and upon no line to one, and upon as few dots as it can.
    Where there is no such place it is left out.

    Args:
        dots: all dots of the axes, shape (n, 2), in the axes' data.
        named: the index of each name's dot.
    """
    points = axes.figure.dpi / 72
    frame = np.array(axes.bbox.extents) / points
    centres = axes.transData.transform(dots) / points
    crowd = _around(centres, _DOT)
    covered: Floats = np.empty((0, 4))
    for name, dot in zip(names, named, strict=True):
        position = centres[dot]
        size = _size(axes, name) / points
        offsets = _offsets(position, size, frame)
        boxes = _around(position + offsets, size / 2)
        # From the dot to each place: shape (places, steps, 4).
        lines = _around(position + offsets[:, None] * np.linspace(0, 1, _STEPS)[:, None], _ROOM / 2)
        free = (boxes[:, :2] >= frame[:2]).all(axis=1) & (boxes[:, 2:] <= frame[2:]).all(axis=1)
        free &= ~_overlap(boxes, covered).any(axis=1) & ~_overlap(lines, covered).any(axis=(1, 2))
        if not free.any():
            continue
        cost = np.linalg.norm(np.maximum(np.abs(offsets) - size / 2, 0), axis=1)
        cost += _COVERED * _overlap(boxes, crowd).sum(axis=1)
        # Of places that are as good to a hundredth of a point the first.
        best = int(np.where(free, cost.round(2), np.inf).argmin())
        annotation = axes.annotate(
            name,
            tuple(dots[dot]),
            xytext=tuple(offsets[best]),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=letters(8),
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2},
        )
        # Its place was sought within the axes as they are: they must not make room for it.
        annotation.set_in_layout(False)
        covered = np.vstack((covered, boxes[best], lines[best][1:]))


def _around(places: Floats, room: Floats | float) -> Floats:
    """Return boxes (x0, y0, x1, y1) around places."""
    return np.concatenate((places - room, places + room), axis=-1)


def _size(axes: Axes, text: str) -> Floats:
    """Width and height of a name with the room around it, in pixels."""
    measured = axes.text(0, 0, text, fontsize=letters(8))
    size = np.array(measured.get_window_extent().size) + 2 * _ROOM * axes.figure.dpi / 72
    measured.remove()
    return np.asarray(size, np.float64)


def _offsets(position: Floats, size: Floats, frame: Floats) -> Floats:
    """From the dot to the middle of each place that a name of this size may have."""
    ways = np.stack((np.cos(_ANGLES), np.sin(_ANGLES)), axis=1)
    # To the border of a square, so that the middle of a name's side or its corner is what is nearest.
    ways /= np.abs(ways).max(axis=1, keepdims=True)
    low, high = frame[:2] + size / 2, frame[2:] - size / 2
    across = np.linspace(low[0], high[0], _ACROSS)
    up = np.linspace(low[1], high[1], 2 + max(0, int((high[1] - low[1]) / _LINE)))
    grid = np.stack(np.meshgrid(across, up), axis=2).reshape(-1, 2) - position
    return np.vstack((ways * (size / 2 + _AWAY), grid))


def _overlap(boxes: Floats, other_boxes: Floats) -> NDArray[np.bool_]:
    """Which boxes (x0, y0, x1, y1), shape (..., 4), meet which others; shape (..., n_others)."""
    near = np.maximum(boxes[..., None, :2], other_boxes[:, :2])
    far = np.minimum(boxes[..., None, 2:], other_boxes[:, 2:])
    return np.asarray((near < far).all(axis=-1))
