"""Heat map of the share of each query's items that each run covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trecexam.tables.plots.model import Plot, Size
from trecexam.tables.plots.style import SEQUENTIAL, label_rows, letters, short
from trecexam.tables.table import Table
from trecexam.tables.terminal import cut
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: More runs, or queries, than this have no names at the side.
_RUNS, _QUERIES = 60, 45
#: Inches that queries have no room in: names of runs, and the bar with its numbers.
_BESIDE = 1.9
_WIDTH = 7.2


def coverage_plot(
    runs: Sequence[str], covered: Mapping[str, NDArray[np.bool_]], min_rating: int, depth: int
) -> Plot:
    """Plots runs from the best down, and queries from the hardest on.

    Args:
        runs: as on the leaderboard.
        covered: query_id -> which run covers which item, shape (n_runs, n_items), runs in that order.
        min_rating, depth: a run covers an item where one of its first `depth` passages has this rating.
    """
    shares = {query_id: reached.mean(axis=1) for query_id, reached in covered.items()}
    order = sorted(shares, key=lambda query_id: (float(shares[query_id].mean()), query_id))
    name = f"Cover(rel={min_rating})@{depth}"
    rows = tuple(
        (run, query_id, float(shares[query_id][run_index]))
        for run_index, run in enumerate(runs)
        for query_id in order
    )
    none = sum(not reached.any() for reached in covered.values())
    return Plot(
        "coverage",
        f"Coverage by run and query: {name}",
        f"Each cell is the share of the query's items that the run's first {depth} passages reach (rating "
        f"{min_rating} or better). Runs from the best on the leaderboard down, queries from the hardest on.",
        f"{plural(len(runs), 'run')} by {plural(len(order), 'query')}. The hardest query is "
        f"{cut(order[0], 40)} (mean coverage {float(shares[order[0]].mean()):.2f}), the easiest "
        f"{cut(order[-1], 40)} ({float(shares[order[-1]].mean()):.2f}); of {none} queries "
        "no run covers any item.",
        Table(("run", "query_id", name), rows),
        _draw,
        Size(_WIDTH, min(8.2, 1.1 + 0.16 * max(len(runs), 10) + 0.5 * (len(order) <= _QUERIES)), rows=True),
    )


def _draw(figure: Figure, plot: Plot) -> None:
    rows = plot.table.rows
    runs = list(dict.fromkeys(str(row[0]) for row in rows))
    queries = [str(row[1]) for row in rows[: len(rows) // len(runs)]]
    values = np.array([row[2] for row in rows], float).reshape(len(runs), len(queries))
    across = 72 * (figure.get_figwidth() - _BESIDE)
    named = len(queries) <= _QUERIES and across >= letters(7) * len(queries)
    axes = figure.subplots()
    image = axes.imshow(values, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="none")
    label_rows(axes, runs, _RUNS)
    if named:
        axes.set_xticks(
            range(len(queries)), [short(query) for query in queries], rotation=90, fontsize=letters(8)
        )
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel("query, hardest first")
    else:
        axes.set_xticks([])
        axes.set_xlabel(f"{len(queries):,} queries, hardest first")
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, aspect=30, pad=0.01)
    bar.set_label("share of items covered")
    bar.outline.set_visible(False)
