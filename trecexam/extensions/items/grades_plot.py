"""Plots of the grader's ratings: frequencies overall and by item, including missing ratings."""

from __future__ import annotations

from collections.abc import Sequence
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
    axes.set_xlim(0, max(shares) * 1.35)
    axes.set_xlabel("share of cells")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    grid(axes, "x")


def grades_by_item_plot(items: Sequence[tuple[str, str]], counts: NDArray[np.int64]) -> Plot:
    """Plots the shares of each grade, with a column per item.

    Args:
        items: (query_id, item_id) of each.
        counts: of shape (n_items, len(GRADES)).
    """
    totals = np.maximum(counts.sum(axis=1), 1)
    best = (counts[:, : len(RATINGS)] * np.arange(len(RATINGS))).sum(axis=1)
    mean = best / np.maximum(counts[:, : len(RATINGS)].sum(axis=1), 1)
    order = sorted(
        range(len(items)), key=lambda n: (mean[n], -counts[n, len(RATINGS) :].sum() / totals[n], items[n])
    )
    rows = tuple((*items[n], *counts[n].tolist()) for n in order)
    unparsed = int((counts[:, len(RATINGS) :].sum(axis=1) > 0).sum())
    return Plot(
        "grades_by_item",
        "Grades by item",
        "Each column is an item, and shows the shares of its grades; items from the lowest mean rating on. "
        "A bank in which all columns look alike tells passages apart, but not items.",
        f"{len(items):,} items; {unparsed:,} of them have cells without a rating.",
        Table(("query_id", "item_id", *GRADES), rows),
        _draw_items,
        Size(WIDTH, 3.4),
    )


def _draw_items(figure: Figure, plot: Plot) -> None:
    counts = np.array([row[2:] for row in plot.table.rows], float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    # One picture, whose size depends on no number of items but in pixels: the rows are percent.
    ends = np.round(np.cumsum(shares, axis=1) * 200).astype(int)
    which = (np.arange(200)[:, None, None] >= ends[None]).sum(axis=2)
    palette = np.array([_rgb(colour) for colour in (*_COLOURS, "#ffffff")], np.uint8)
    axes = figure.subplots()
    axes.imshow(
        palette[which],
        aspect="auto",
        interpolation="none",
        origin="lower",
        extent=(0.5, len(counts) + 0.5, 0, 1),
    )
    from matplotlib.patches import Patch

    grade_indices = [n for n in range(len(GRADES)) if n < len(RATINGS) or counts[:, n].any()]
    figure.legend(
        handles=[Patch(facecolor=_COLOURS[n], label=GRADES[n]) for n in grade_indices],
        loc="outside upper center",
        ncols=len(grade_indices) if len(grade_indices) <= 8 else 5,
        frameon=False,
        handlelength=0.9,
        handletextpad=0.4,
        columnspacing=0.9,
    )
    axes.set_xlabel(f"{len(counts):,} items, lowest mean rating first")
    axes.set_ylabel("share of cells")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.locator_params(axis="x", integer=True)


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))
