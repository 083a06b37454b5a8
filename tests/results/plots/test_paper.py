"""Plots at paper sizes: no overlaps, the requested width, and reproducible bytes."""

from __future__ import annotations

import re

import matplotlib
import numpy as np
import pytest
from drawn_texts import assert_readable, texts

from trecexam.errors import TrecexamError
from trecexam.features.correlation.paired_scores import PairedScores
from trecexam.features.correlation.scatter_plot import scatter_plot
from trecexam.features.leaderboard.plot import leaderboard_plot
from trecexam.results.plots.paper import PaperFigure
from trecexam.results.result import Plot
from trecexam.scores.leaderboard import Leaderboard, Row, Score

NAMES = ("leaderboard", "scatter", "thresholds", "items")
#: One column, where room is short, and two columns.
WIDTHS = (3.33, pytest.param(7.0, marks=pytest.mark.slow))


def crowd(n: int, *, outlier: bool = False) -> Plot:
    """A scatter plot of `n` runs close together, and with `outlier` one far below."""
    runs = [f"bm25tuned_rm3_rerank_{number:03}" for number in range(n)]
    chance = np.random.default_rng(0)
    official = np.repeat(chance.normal(0.6, 0.08, n)[:, None], 2, 1)
    rubric = 0.4 + 0.4 * official + chance.normal(0, 0.03, (n, 1))
    if outlier:
        rubric[0] = 0.11
        official[0] = 0.06
    return scatter_plot(PairedScores("P@5", "nDCG@10", None, tuple(runs), (), rubric, official), None)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_no_texts_overlap_or_leave_the_page(named_plots: dict[str, Plot], name: str, width: float) -> None:
    assert_readable(PaperFigure(named_plots[name], width=width, letters=8))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [9, 40, 200])
def test_names_of_runs_in_a_crowd_do_not_overlap(n: int, width: float) -> None:
    figure = PaperFigure(crowd(n, outlier=True), width=width, letters=8)
    assert_readable(figure)
    assert len(figure.axes[0].texts) >= min(n, 4) - 1


def test_axes_span_all_runs_and_those_of_shares_end_at_one() -> None:
    plot = crowd(40, outlier=True)
    axes = PaperFigure(plot, width=3.33, letters=8).axes[0]
    for limits, column in ((axes.get_xlim(), 4), (axes.get_ylim(), 1)):
        values = [float(row[column] or 0) for row in plot.table.rows]
        assert limits[0] < min(values) < max(values) < limits[1] <= 1
    means = [0.8 - 0.01 * n for n in range(20)] + [0.04]
    for share, end in ((1.0, 1.0), (5.0, 4.0)):
        rows = tuple(Row(f"run{n:02}", 9, 9, (Score(share * m, 0.01),)) for n, m in enumerate(means))
        figure = PaperFigure(leaderboard_plot(Leaderboard(("P@5",), 9, "all", rows)), width=3.33, letters=8)
        low, high = figure.axes[0].get_xlim()
        assert low < share * 0.04 < share * 0.8 < high
        assert (high <= end) == (share == 1)
        assert_readable(figure)


@pytest.mark.parametrize(("width", "points"), [(3.3, 237.6), (8.4 / 2.54, 238.11)])
def test_the_page_is_exactly_as_wide_as_requested(
    named_plots: dict[str, Plot], width: float, points: float
) -> None:
    with matplotlib.rc_context({"savefig.bbox": "tight"}):
        content = PaperFigure(named_plots["scatter"], width=width, height=2, letters=8).file("pdf")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content)
    assert box
    assert float(box[1]) == pytest.approx(points, abs=0.01)
    assert float(box[2]) == pytest.approx(144, abs=0.01)


def test_a_pdf_embeds_its_fonts_as_true_type_and_contains_no_time(named_plots: dict[str, Plot]) -> None:
    content = PaperFigure(named_plots["thresholds"]).file("pdf")
    assert b"/FontFile2" in content
    assert b"/Subtype /Type3" not in content
    assert not re.search(rb"/(CreationDate|ModDate|Producer|Creator)", content)
    assert b"/Title (Rank correlation by rating threshold" in content


def test_a_notebook_shows_the_figure(named_plots: dict[str, Plot]) -> None:
    assert PaperFigure(named_plots["leaderboard"])._repr_png_().startswith(b"\x89PNG")


def test_rows_without_room_for_names_show_ranks(named_plots: dict[str, Plot]) -> None:
    figure = PaperFigure(named_plots["leaderboard"], width=3.33, height=1.2, letters=8)
    assert_readable(figure)
    assert "rank" in dict(texts(figure))


def test_a_size_without_room_for_the_plot_is_a_one_line_error(named_plots: dict[str, Plot]) -> None:
    with pytest.raises(TrecexamError, match=r"plot scatter: 1\.00 x 1\.00 in are too small.*30 points; give"):
        PaperFigure(named_plots["scatter"], width=1, height=1, letters=30)
