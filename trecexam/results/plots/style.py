"""Style of all plots: colours that colour-blind people tell apart, plain axes, fitting names."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from trecexam.results.terminal import cut_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

INK, MUTED, GRID = "#1b1f24", "#57606a", "#d8dee4"
#: Okabe & Ito's palette, designed for all kinds of colour vision.
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
SEQUENTIAL = "Blues"
#: Width in inches; narrow, so that text stays readable on a phone.
WIDTH = 4.8
#: Base font size in points in the report; font sizes named by plots scale with it.
LETTERS = 9.0
#: Maximum letters of a name, its maximum share of the figure's width, and the width of a letter.
_NAME, _SIDE, _LETTER = 26, 0.4, 0.55
#: Share of a figure's height for rows.
_DOWN = 0.85
#: Maximum number of runs with readable names; plots with more runs show ranks.
NAMED = 60

#: Settings of matplotlib that replace the user's.
RC: dict[str, Any] = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": LETTERS,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "image.composite_image": False,
    # Text in a PDF stays text, in fonts that are embedded; journals refuse the default, Type 3.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "trecexam",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}


def letters(points: float) -> float:
    """Return the font size in the current figure for a font size in the report."""
    import matplotlib

    return points * float(matplotlib.rcParams["font.size"]) / LETTERS


def fitted(axes: Axes, names: Sequence[str]) -> list[str]:
    """Return names cut to fit the figure at 8 points; distinct names stay distinct."""
    room = _SIDE * 72 * axes.figure.bbox.width / axes.figure.dpi / (_LETTER * letters(8))
    return cut_apart(names, max(8, min(_NAME, int(room))))


def grid(axes: Axes, axis: Any = "both") -> None:
    """Draw thin lines behind everything."""
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis=axis)


def end_at_one(axes: Axes, axis: Literal["x", "y"]) -> None:
    """End an axis at 1 if no value is above 1, and draw marks at the end whole."""
    end, highest = (
        (axes.get_xlim()[1], axes.dataLim.x1) if axis == "x" else (axes.get_ylim()[1], axes.dataLim.y1)
    )
    if highest <= 1 < end:
        axes.set(**{f"{axis}lim": (None, 1)})
    for line in axes.lines:
        # A line without a mark has no extent, which breaks the layout.
        line.set_clip_on(np.size(line.get_xdata()) == 0)


def draw_rows(axes: Axes, names: Sequence[str], values: Floats, low: Floats, high: Floats) -> None:
    """Draw a dot and its interval per row, first on top; label every tenth rank if rows are too many.

    Args:
        values: one value per row; NaN if missing.
        low, high: the ends of their intervals; NaN for none.
    """
    row_indices, few = np.arange(len(names)), len(names) <= NAMED
    axes.hlines(row_indices, low, high, color=MUTED, linewidth=1.0 if few else 0.6)
    axes.plot(values, row_indices, "o", color=BLUE, markersize=4 if few else 2.5)
    end_at_one(axes, "x")
    axes.set_ylim(len(names) - 0.5, -0.5)
    if few and len(names) <= _DOWN * 72 * axes.figure.bbox.height / axes.figure.dpi / letters(8):
        axes.set_yticks(row_indices, fitted(axes, names), fontsize=letters(8))
    else:
        tenth = [0, *range(9, len(names), 10)]
        axes.set_yticks(tenth, [str(row_index + 1) for row_index in tenth])
        axes.set_ylabel("rank")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    grid(axes, "x")


#: Lock for drawing and saving: matplotlib's settings are global to the process.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def own_settings(more: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Replace the user's settings of matplotlib by ours, for one thread at a time."""
    import matplotlib

    with _ONE_AT_A_TIME, warnings.catch_warnings(), matplotlib.rc_context():
        # Letters that the PNG's font lacks become boxes there; browsers have other fonts for them.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")
        defaults: Any = {
            key: value for key, value in matplotlib.rcParamsDefault.items() if "backend" not in key
        }
        matplotlib.rcParams.update(defaults | RC | dict(more or {}))
        yield
