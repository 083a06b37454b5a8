"""Plot of item quality: mean rating and share of runs that cover the item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trecexam.extensions.items.quality import ItemRow
from trecexam.results.plots.style import BLUE, MUTED, ORANGE, PURPLE, grid
from trecexam.results.result import Plot
from trecexam.results.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Maximum number of vector dots; more become an image, since their SVG would be large and slow.
_DRAWN = 400


def items_plot(items: Sequence[ItemRow], min_rating: int, depth: int) -> Plot:
    """Plot all active items with a rating; at least one is required."""
    live = [item for item in items if not item.retired]
    none = sum(item.runs_covering == 0 for item in live)
    every = sum(item.share_of_runs == 1 for item in live)
    return Plot(
        "items",
        "Items by rating and coverage",
        f"Each dot is an item: the mean rating of the pooled passages on it, and the share of runs that "
        f"cover it (one of the first {depth} passages rated {min_rating} or better). Orange items, on "
        "the top and bottom lines, tell no runs apart."
        + (" Diamonds are vital items." if any(item.importance == "vital" for item in live) else ""),
        f"{len(live):,} items: no run covers {none:,}, all runs cover {every:,}.",
        Table(ItemRow._fields, tuple(items)),
        _draw,
        3.4,
    )


def _draw(figure: Figure, plot: Plot) -> None:
    axes = figure.subplots()
    mean, runs, vital = (plot.table.header.index(n) for n in ("mean_rating", "share_of_runs", "importance"))
    rows = [row for row in plot.table.rows if row[mean] is not None]
    for is_vital, marker, colour in ((False, "o", BLUE), (True, "D", PURPLE)):
        marked = [row for row in rows if (row[vital] == "vital") is is_vital]
        x, y = (np.array([row[c] for row in marked], float) for c in (mean, runs))
        flat = (y == 0) | (y == 1)
        for part, edge in ((~flat, colour), (flat, ORANGE)):
            axes.plot(
                x[part],
                y[part],
                marker,
                color=edge,
                markersize=4,
                alpha=0.55 if len(rows) > 60 else 0.9,
                markeredgewidth=0,
                clip_on=False,
                rasterized=len(rows) > _DRAWN,
            )
    axes.set_xlim(0, max(5.0, max((float(row[mean] or 0) for row in rows), default=5.0)))
    axes.set_ylim(0, 1)
    axes.axhline(1, color=MUTED, linewidth=0.5)
    axes.set_xlabel("mean rating of the pooled passages")
    axes.set_ylabel("share of runs that cover it")
    axes.yaxis.set_major_formatter("{x:.0%}")
    grid(axes, "x")
