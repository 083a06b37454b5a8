"""One plot of each kind, with hostile names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from measure_values import values_of

from trecexam.extensions.items.items_plot import items_plot
from trecexam.extensions.items.quality import ItemRow
from trecexam.features.correlation.paired_scores import PairedScores
from trecexam.features.correlation.scatter_plot import scatter_plot
from trecexam.features.correlation.thresholds_plot import thresholds_plot
from trecexam.features.leaderboard.plot import leaderboard_plot
from trecexam.results.plots.canvas import Drawing
from trecexam.results.result import Plot
from trecexam.scores.correlation import correlate
from trecexam.scores.leaderboard import leaderboard
from trecexam.scores.rank_correlation import QueryDraws

#: Markup, mathematics, an unclosed dollar, right to left, emoji, another script, controls, half a letter.
HOSTILE = (
    "<script>alert(1)</script>",
    "</svg><img src=x onerror=alert(2)>",
    r"$\frac{1}{2}$",
    "a$b",
    "\u202egnp.\u05d0\u05d1\u05d2 \u0645\u0631\u062d\u0628\u0627",
    "\U0001f680\U0001f469\u200d\U0001f52c 検索 run",
    "nul\x00 bell\x07 \x1b[31m \ud800",
    "&amp; \"quoted\" 'too' ]]>",
    "x" * 100_000,
    "",
)
MakePlots = Callable[[Sequence[str]], dict[str, Plot]]


def make_plots(names: Sequence[str]) -> dict[str, Plot]:
    """All plots, of runs, queries and items with these names."""
    chance = np.random.default_rng(1)
    queries = [f"q{n}" for n in range(12)]
    rubric, official = chance.random((2, len(names), len(queries)))
    order = sorted(range(len(names)), key=lambda n: names[n])
    values = {
        name: {q: {"P@5": float(rubric[n, c])} for c, q in enumerate(queries)} for n, name in enumerate(names)
    }
    board = leaderboard(values_of(values), ["P@5"], queries, dict.fromkeys(names, queries))
    runs = [names[n] for n in order]
    ours, theirs = rubric[order], official[order]
    points = [
        ((f"P(rel={t})@5", "nDCG@10", t), correlate(ours**t, theirs, draws=QueryDraws(20)))
        for t in range(1, 6)
    ]
    items = [
        ItemRow(
            names[n % len(names)],
            f"{names[n % len(names)]}/{n}",
            "question",
            ("vital", "okay", "")[n % 3],
            passages=10,
            rated=n % 10,
            mean_rating=n % 10 / 2 if n % 10 else None,
            runs_covering=n % (len(names) + 1),
            n_runs=len(names),
            share_of_runs=n % (len(names) + 1) / len(names),
            text=names[n % len(names)],
        )
        for n in range(30)
    ]
    paired = PairedScores("P@5", "nDCG@10", None, tuple(runs), (), ours, theirs)
    found = (
        leaderboard_plot(board),
        scatter_plot(paired, correlate(ours, theirs)),
        thresholds_plot(points, 4),
        items_plot(items, 4, 5),
    )
    return {plot.name: plot for plot in found}


@pytest.fixture(scope="module")
def hostile_plots() -> dict[str, Plot]:
    return make_plots(HOSTILE)


@pytest.fixture(scope="module")
def named_plots() -> dict[str, Plot]:
    """With runs with long names that differ at their ends."""
    return make_plots([f"university_team-bm25_rm3_reranked-{n}" for n in range(12)])


@pytest.fixture(scope="module", autouse=True)
def drawn_for_the_module(draw: Callable[[Plot], Drawing]) -> Iterator[None]:
    """Plots drawn once for a module's tests are really drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trecexam.results.plots.canvas._drawn", draw)
        yield
