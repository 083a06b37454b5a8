"""out/report.html in a browser: it is self-contained, fits a phone, and prints."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import ROOT, HashGrader, write_run

import trecexam
from trecexam.results.plots.canvas import Drawing
from trecexam.results.result import Plot

if TYPE_CHECKING:
    from playwright.sync_api import Page

PLOTS = ("leaderboard", "scatter")
HOSTILE = (
    "<script>document.title='x'</script>",
    "\u202egnp.\u05d0\u05d1",
    "\U0001f680検索",
    "x" * 3000,
    "$a$",
)
#: Contrast required for small letters: WCAG 2, level AA.
CONTRAST = 4.5


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, draw: Callable[[Plot], Drawing]) -> Path:
    """The page of the demo track with additional hostile names, with real plots."""
    root = tmp_path_factory.mktemp("report") / "track"
    shutil.copytree(ROOT / "examples" / "track", root, ignore=shutil.ignore_patterns("out", ".trecexam"))
    bank = root / "bank.questions.jsonl"
    rows = [json.loads(line) for line in bank.read_text().splitlines()]
    query = rows[0]["query_id"]
    for n, text in enumerate(HOSTILE):
        rows[0]["questions"].append({"question_id": f"hostile{n}", "question_text": text})
        write_run(root / "runs" / f"hostile{n}.run", {query: ["d1"]}, tag=text)
    bank.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "runs" / "<b>bad.run").write_text("no run\n")
    with (
        pytest.MonkeyPatch.context() as patch,
        trecexam.open_track(root, grader=HashGrader()) as track,
    ):
        patch.setattr("trecexam.results.plots.canvas._drawn", draw)
        track.update()
    return root / "out" / "report.html"


@pytest.fixture
def opened(report: Path, page: Page) -> Iterator[Page]:
    """The page in a tab that can load nothing else."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    yield page
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]


@pytest.mark.plots
def test_all_plots_are_present_with_a_text_alternative(opened: Page) -> None:
    for name in PLOTS:
        picture = opened.locator(f"svg#{name}")
        assert picture.get_attribute("role") == "img"
        box = picture.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 100
    assert opened.get_by_role("img", name="Leaderboard by Cover(rel=4)@10", exact=True).count() == 1
    assert opened.title() == "trecexam demo: evaluation report"
    ids = opened.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert opened.evaluate("document.scripts.length") == 0


@pytest.mark.plots
def test_letters_in_pictures_are_readable_on_a_phone(opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 800})
    sizes = opened.evaluate(
        "[...document.querySelectorAll('figure svg text')].map(e => e.getBoundingClientRect())"
        ".map(b => Math.min(b.width, b.height)).filter(h => h > 0)"
    )
    assert min(sizes) > 4
    heights = sorted(sizes)
    assert heights[len(heights) // 2] >= 8


@pytest.mark.plots
def test_collapsed_sections_are_printed(opened: Page) -> None:
    assert opened.get_by_text("Too hard, about something no run finds").is_visible() is False
    content = opened.pdf(format="A4")
    assert content.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 25
    opened.emulate_media(media="print")
    assert not opened.get_by_role("navigation").is_visible()


@pytest.mark.plots
def test_the_report_can_be_read_by_keyboard(opened: Page) -> None:
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "To the leaderboard"
    summary = opened.locator("summary").last
    summary.focus()
    opened.keyboard.press("Enter")
    assert summary.evaluate("e => e.parentElement.open")


@pytest.mark.usefixtures("with_report")
def test_a_failed_plot_does_not_break_the_page(
    tmp_path: Path, small_track: Path, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(plot: object) -> Drawing:
        raise RuntimeError("</p><script>alert(1)</script>")

    monkeypatch.setattr("trecexam.results.plots.canvas._drawn", draw)
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        track.update()
    page.goto((small_track / "out" / "report.html").as_uri())
    assert page.get_by_text("This plot could not be drawn: RuntimeError: </p><script>").count() == len(PLOTS)
