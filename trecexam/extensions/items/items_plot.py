"""Plot of item quality: mean rating and share of runs that cover the item."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.style import BLUE, MUTED, ORANGE, PURPLE, WIDTH, grid
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: More dots than this become one picture: an SVG of them would be large and slow.
_DRAWN = 400
HEADER = (
    "query_id",
    "item_id",
    "kind",
    "importance",
    "retired",
    "passages",
    "rated",
    "unparsed",
    "mean_rating",
    "share_reaching",
    "runs_covering",
    "n_runs",
    "share_of_runs",
    "discrimination",
    "text",
)


@dataclass(frozen=True)
class ItemSummary:
    """An item of the bank with statistics of its grades.

    Attributes:
        passages: pooled passages of the query that have a text.
        rated: how many of these have a rating, a person's or the grader's, once unparsed ones count or not.
        unparsed: how many answers of the grader had no rating in them, refusals included.
        mean_rating: over the rated ones, 0..5; NaN if missing.
        reaching: how many of them have min_rating or better.
        covering: how many of `n_runs` runs have such a passage in their first ranks.
        discrimination: a of the item response model of `trecexam exam fit`, to three decimals; NaN where all
            or none of the runs cover the item, or too few runs are here.
    """

    query_id: str
    item_id: str
    text: str
    kind: str
    importance: str = ""
    retired: bool = False
    passages: int = 0
    rated: int = 0
    unparsed: int = 0
    mean_rating: float = math.nan
    reaching: int = 0
    covering: int = 0
    n_runs: int = 0
    discrimination: float = math.nan

    @property
    def share_reaching(self) -> float:
        """The share of rated passages that reach it; NaN without any."""
        return self.reaching / self.rated if self.rated else math.nan

    @property
    def share_of_runs(self) -> float:
        """The share of runs that cover it; NaN without runs."""
        return self.covering / self.n_runs if self.n_runs else math.nan


def items_table(items: Sequence[ItemSummary]) -> Table:
    """A row per item; retired items have no numbers."""
    return Table(HEADER, tuple(_row(item) for item in items))


def _row(item: ItemSummary) -> tuple[str | int | float | None, ...]:
    says = (item.query_id, item.item_id, item.kind, item.importance, "retired" if item.retired else "")
    if item.retired:
        return (*says, *(None for _ in range(9)), item.text)
    return (
        *says,
        item.passages,
        item.rated,
        item.unparsed,
        item.mean_rating,
        item.share_reaching,
        item.covering,
        item.n_runs,
        item.share_of_runs,
        item.discrimination,
        item.text,
    )


def items_plot(items: Sequence[ItemSummary], min_rating: int, depth: int) -> Plot:
    """Plots all active items with a rating; at least one is required."""
    live = [item for item in items if not item.retired]
    none = sum(item.covering == 0 for item in live)
    every = sum(item.covering == item.n_runs > 0 for item in live)
    return Plot(
        "items",
        "Items by rating and coverage",
        f"Each dot is an item: the mean rating of the pooled passages on it, and the share of runs that "
        f"cover it (one of the first {depth} passages rated {min_rating} or better). Orange items, on "
        "the top and bottom lines, tell no runs apart."
        + (" Diamonds are vital items." if any(item.importance == "vital" for item in live) else ""),
        f"{len(live):,} items: no run covers {none:,}, all runs cover {every:,}.",
        items_table(items),
        _draw,
        Size(WIDTH, 3.4),
    )


def _draw(figure: Figure, plot: Plot) -> None:
    axes = figure.subplots()
    mean, runs, vital = (plot.table.header.index(n) for n in ("mean_rating", "share_of_runs", "importance"))
    rows = [row for row in plot.table.rows if row[mean] is not None and not math.isnan(float(row[mean] or 0))]
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
