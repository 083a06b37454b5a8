"""Each kind of plot as SVG and PNG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from trecexam.features.correlation.paired_scores import PairedScores
from trecexam.features.correlation.scatter_plot import scatter_plot
from trecexam.results.plots.canvas import Drawing, draw
from trecexam.results.plots.paper import PaperFigure
from trecexam.results.result import Plot

pytestmark = pytest.mark.plots
NAMES = ("leaderboard", "scatter", "thresholds", "items")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def hostile(hostile_plots: dict[str, Plot]) -> dict[str, Drawing]:
    return {name: draw(plot) for name, plot in hostile_plots.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_markup_and_mathematics_in_names_are_plain_text(
    hostile: dict[str, Drawing], hostile_plots: dict[str, Plot], name: str
) -> None:
    drawing = hostile[name]
    assert drawing.why == ""
    tree = ET.fromstring(drawing.svg)
    tags = {element.tag.removeprefix(SVG) for element in tree.iter()}
    assert tags <= {"svg", "title", "desc", "defs", "style", "g", "path", "use", "text", "clipPath", "rect",
                    "image", "pattern", "polygon"}  # fmt: skip
    assert not [key for element in tree.iter() for key in element.attrib if key.startswith("on")]
    assert len(drawing.svg) < 120_000


def test_a_run_name_with_dollar_signs_keeps_them(hostile: dict[str, Drawing]) -> None:
    said = {element.text for element in ET.fromstring(hostile["leaderboard"].svg).iter(f"{SVG}text")}
    assert {r"$\frac{1}{2}$", "a$b", "<script>alert(1)</script>"} <= said


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_can_be_embedded_in_a_page_with_others(
    hostile: dict[str, Drawing], hostile_plots: dict[str, Plot], name: str
) -> None:
    text = hostile[name].svg.decode()
    assert text.startswith("<svg ")
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert all(one == name or one.startswith(f"{name}-") for one in ids)
    links = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', text)
    assert {one or other for one, other in links} <= set(ids)
    assert not re.findall(r'href="(?!#|data:image/png)', text)
    assert f'<style type="text/css">#{name} *{{' in text
    tree = ET.fromstring(text)
    assert tree.get("role") == "img"
    told = {element.get("id"): element.text for element in tree}
    assert told[tree.get("aria-labelledby")] == hostile_plots[name].title
    assert told[tree.get("aria-describedby")]


@pytest.mark.slow
def test_drawing_again_gives_the_same_bytes_with_any_user_settings_and_in_threads(
    hostile: dict[str, Drawing], hostile_plots: dict[str, Plot]
) -> None:
    with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path", "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        with ThreadPoolExecutor(4) as pool:
            again = dict(zip(hostile_plots, pool.map(draw, hostile_plots.values()), strict=True))
        assert dict(matplotlib.rcParams) == before
    assert again == hostile


def test_names_of_outliers_cover_no_points_of_other_runs() -> None:
    runs = [f"a_run_of_{n:03}" for n in range(40)]
    official = np.repeat(np.linspace(0.4, 0.6, 40)[:, None], 2, 1)
    rubric = 0.5 + 0.3 * official + np.random.default_rng(0).normal(0, 0.02, (40, 1))
    rubric[0] = official[0] = 0
    plot = scatter_plot(PairedScores("P@5", "nDCG@10", None, tuple(runs), (), rubric, official), None)
    figure = Figure(layout="constrained")
    plot.draw(figure, plot)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    dots = axes.transData.transform([(float(row[4] or 0), float(row[1] or 0)) for row in plot.table.rows])
    # Without the lines from names to dots.
    boxes = [Text.get_window_extent(name) for name in axes.texts]
    assert len(boxes) == 4
    assert not [box for box in boxes for x, y in dots if box.contains(x, y)]


def test_a_failed_pdf_affects_no_other_picture(
    hostile_plots: dict[str, Plot], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: PaperFigure, kind: str) -> bytes:
        raise RuntimeError("no such font")

    monkeypatch.setattr(PaperFigure, "file", broken)
    plot = hostile_plots["scatter"]
    assert draw(plot, pdf=True) == replace(draw(plot), why="RuntimeError: no such font")
