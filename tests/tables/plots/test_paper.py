"""Plots at paper sizes: no overlaps, the requested width, and reproducible bytes."""

from __future__ import annotations

import re
import time

import matplotlib
import numpy as np
import pytest
from drawn_texts import assert_readable, texts

from trecexam.errors import TrecexamError
from trecexam.features.correlation.paired_scores import PairedScores
from trecexam.features.correlation.scatter_plot import scatter_plot
from trecexam.features.leaderboard.plot import leaderboard_plot
from trecexam.scores.leaderboard import Leaderboard, Row, Score
from trecexam.tables.plots.model import Plot
from trecexam.tables.plots.paper import paper_figure

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
    assert_readable(paper_figure(named_plots[name], width=width, letters=8))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [9, 40, 200])
def test_names_of_runs_in_a_crowd_do_not_overlap(n: int, width: float) -> None:
    figure = paper_figure(crowd(n, outlier=True), width=width, letters=8)
    assert_readable(figure)
    assert len(figure.axes[0].texts) >= min(n, 5) - 1


def test_labelling_takes_bounded_time_for_any_number_of_runs() -> None:
    plot = crowd(1000, outlier=True)
    began = time.process_time()
    figure = paper_figure(plot, width=3.33, letters=8)
    assert time.process_time() - began < 5
    assert len(figure.axes[0].texts) <= 10


def test_a_run_far_from_all_others_does_not_compress_their_scale() -> None:
    plot = crowd(40, outlier=True)
    axes = paper_figure(plot, width=3.33, letters=8).axes[0]
    inside = [row for row in plot.table.rows if row[0] != "bm25tuned_rm3_rerank_000"]
    for limits, column in ((axes.get_xlim(), 4), (axes.get_ylim(), 1)):
        values = [float(row[column] or 0) for row in inside]
        assert limits[0] < min(values) < max(values) < limits[1]
        assert limits[0] > 0.2
    (label,) = [text.get_text() for text in axes.texts if text.get_text().endswith(")")]
    assert re.fullmatch(r"bm25tuned.*_000 \(0\.06, 0\.11\)", label)
    assert "Triangles at the edge" in plot.caption
    assert "Triangles" not in crowd(40).caption


def test_the_last_run_of_a_leaderboard_is_at_the_edge_with_its_value() -> None:
    means = [0.8 - 0.01 * n for n in range(20)] + [0.04]
    rows = tuple(Row(f"run{n:02}", 9, 9, (Score(mean, 0.01),)) for n, mean in enumerate(means))
    plot = leaderboard_plot(Leaderboard(("P@5",), 9, "all", rows))
    figure = paper_figure(plot, width=3.33, letters=8)
    assert figure.axes[0].get_xlim()[0] > 0.5
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.04"]
    assert "triangle at the edge" in plot.caption
    assert_readable(figure)


@pytest.mark.parametrize(("width", "points"), [(3.3, 237.6), (8.4 / 2.54, 238.11)])
def test_the_page_is_exactly_as_wide_as_requested(
    named_plots: dict[str, Plot], width: float, points: float
) -> None:
    with matplotlib.rc_context({"savefig.bbox": "tight"}):
        content = paper_figure(named_plots["scatter"], width=width, height=2, letters=8).file("pdf")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content)
    assert box
    assert float(box[1]) == pytest.approx(points, abs=0.01)
    assert float(box[2]) == pytest.approx(144, abs=0.01)


def test_a_pdf_embeds_its_fonts_as_true_type_and_contains_no_time(named_plots: dict[str, Plot]) -> None:
    content = paper_figure(named_plots["thresholds"]).file("pdf")
    assert b"/FontFile2" in content
    assert b"/Subtype /Type3" not in content
    assert not re.search(rb"/(CreationDate|ModDate|Producer|Creator)", content)
    assert b"/Title (Rank correlation by rating threshold" in content


def test_a_notebook_shows_the_figure(named_plots: dict[str, Plot]) -> None:
    assert paper_figure(named_plots["leaderboard"])._repr_png_().startswith(b"\x89PNG")


def test_rows_without_room_for_names_show_ranks(named_plots: dict[str, Plot]) -> None:
    figure = paper_figure(named_plots["leaderboard"], width=3.33, height=1.2, letters=8)
    assert_readable(figure)
    assert "rank" in dict(texts(figure))


def test_a_size_without_room_for_the_plot_is_a_one_line_error(named_plots: dict[str, Plot]) -> None:
    with pytest.raises(TrecexamError, match=r"plot scatter: 1\.00 x 1\.00 in are too small.*30 points; give"):
        paper_figure(named_plots["scatter"], width=1, height=1, letters=30)
