"""The page in a real Chromium: what a reader sees, by mouse, by keyboard, on a phone, with hostile text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from readable import FAINT, NAMELESS
from served import Served, serving
from support import graded_track, make_small_track, write_run

import trecexam
from trecexam.extensions.page.urls import Urls

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

urls = Urls()

HOSTILE = "\"'><img src=x onerror=alert(1)><script>alert(2)</script></textarea></title><svg/onload=alert(3)>"
HEBREW = "שלום עולם, זהו קטע בעברית 123 (עם סוגריים)."
EMOJI = "👩🏽‍🔬 a scientist 🇩🇪 in a flag \N{ZERO WIDTH JOINER} and 🙂 faces"
LONG = ("word " * 19_990) + "x" * 50


@pytest.fixture(scope="module")
def hostile_track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A track whose passages, answers and names contain hostile and unusual text."""
    root = tmp_path_factory.mktemp("odd") / "track"
    make_small_track(root, queries=2)
    texts = [f"{HOSTILE} in a passage", HEBREW, EMOJI, LONG]
    lines = [json.loads(line) for line in (root / "passages.jsonl").read_text().splitlines()]
    for line, text in zip(lines, texts, strict=False):
        line["text"] = text
    (root / "passages.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_run(
        root / "runs" / "odd.run", {"q1": [f"q1-d{n:02}" for n in range(8)]}, tag=HOSTILE.replace(" ", "/")
    )
    grades = [
        {"query_id": line["docid"][:2], "doc_id": line["docid"], "item_id": f"{line['docid'][:2]}/{item}",
         "rating": item, "answer": line["text"][:200], "text": line["text"]}
        for line in lines for item in range(4)
    ]  # fmt: skip
    (root / "grades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in grades))
    (root / "trecexam.toml").write_text('[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    with trecexam.open_track(root) as track:
        track.update()
    return root


@pytest.fixture
def hostile_server(hostile_track: Path) -> Iterator[Served]:
    with serving(hostile_track) as running:
        yield running


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graded_track(tmp_path_factory.mktemp("graded") / "track", queries=30)


@pytest.fixture
def served(graded: Path, tmp_path: Path) -> Iterator[Served]:
    with serving(Path(shutil.copytree(graded, tmp_path / "track"))) as running:
        yield running


ADDRESSES = [
    "/",
    "/result/queries",
    "/result/disagreements",
    "/section/holes",
    "/result/rejected",
    urls.run("run1"),
    urls.query("q1", run="run1"),
    urls.query("q1"),
    urls.query("q1", show="items"),
    urls.query("q1", show="runs"),
    urls.passage("q1", "q1-d00", item="q1/1"),
    urls.passage("q1", "q1-d01", item="q1/1"),
    urls.passage("q1", "q1-d02", item="q1/1"),
    urls.passage("q1", "q1-d03", item="q1/1"),
    "/nowhere",
]


def test_every_page_fits_is_readable_and_runs_no_injected_code(
    hostile_server: Served, browser: Browser
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    trouble: list[str] = []
    page.on("dialog", lambda dialog: (trouble.append("a dialog"), dialog.dismiss()))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda said: trouble.append(said.text) if "Content Security" in said.text else None)
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(hostile_server.url) else trouble.append(asked.url),
    )
    for address in ADDRESSES:
        page.goto(hostile_server.url + address)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        assert page.evaluate(FAINT) == [], address
        assert page.evaluate(NAMELESS) == [], address
        assert page.locator("img, h1 h1, main script").count() == 0
        assert page.locator("h1").count() == 1
    assert trouble == []
    context.close()


def test_the_page_works_by_keyboard_alone(served: Served, page: Page) -> None:
    page.goto(served.url)
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.text_content() == "Skip to the content"
    assert skip.bounding_box()["x"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for _ in range(60):
        if page.evaluate("document.activeElement.textContent") == "run1":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/run1")


def test_a_new_state_is_shown_automatically_and_keeps_the_readers_position(
    served: Served, page: Page
) -> None:
    page.set_viewport_size({"width": 1280, "height": 500})
    page.goto(served.url + urls.query("q1"))
    link = page.locator("tbody th a").nth(5)
    link.focus()
    page.evaluate("window.scrollTo(0, 150)")
    target = link.get_attribute("href")
    publish_rating(served, 1)
    page.locator('body[data-version="2"]').wait_for(timeout=60_000)
    assert page.evaluate("document.activeElement.getAttribute('href')") == target
    assert page.evaluate("scrollY") == 150
    assert "new state" in (page.locator("#told").text_content() or "")


def test_half_typed_text_stays_until_the_reader_asks_for_the_new_state(served: Served, page: Page) -> None:
    page.goto(served.url + "/")
    page.locator("#filter").fill("half a wo")
    publish_rating(served, 2)
    page.locator("#notice").wait_for(state="visible", timeout=60_000)
    assert page.locator("#filter").input_value() == "half a wo"
    assert page.evaluate("document.activeElement.id") == "filter"
    page.get_by_role("button", name="Show the new state").click()
    page.locator('body[data-version="2"]').wait_for()
    assert page.locator("#notice").is_hidden()


def publish_rating(served: Served, rating: int) -> None:
    with trecexam.open_track(served.root) as track:
        track.override("q1", "q1-d00", rating, item="q1/0", who="me", why="it does")
        track.update()
    served.live.reload()


def test_the_page_reloads_itself_while_the_track_is_first_read(
    graded: Path, tmp_path: Path, context: BrowserContext
) -> None:
    root = Path(shutil.copytree(graded, tmp_path / "track"))
    settings = (root / "trecexam.toml").read_text()
    (root / "trecexam.toml").write_text("[track")
    with serving(root) as running:
        page = context.new_page()
        page.goto(running.url)
        assert "not valid TOML" in (page.locator("#status").text_content() or "")
        (root / "trecexam.toml").write_text(settings)
        running.live.reload()
        page.get_by_role("heading", name="Leaderboard").wait_for(timeout=60_000)
        assert not (page.locator("#status").text_content() or "").strip()


def test_the_token_opens_the_page_and_is_not_visible_afterwards(
    graded: Path, tmp_path: Path, context: BrowserContext, page: Page
) -> None:
    root = Path(shutil.copytree(graded, tmp_path / "track"))
    with serving(root, token="s3cret") as running:
        page.goto(f"{running.url}/result/queries?token=s3cret")
        page.get_by_role("heading", name="Queries").wait_for()
        assert page.url == f"{running.url}/result/queries"
        assert page.evaluate("document.cookie") == ""
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        assert "s3cret" not in cookie["value"]
        page.get_by_role("link", name="Holes").click()
        page.get_by_role("heading", name="Holes").wait_for()


def test_the_page_says_so_when_the_server_stops(
    graded: Path, tmp_path: Path, context: BrowserContext
) -> None:
    page = context.new_page()
    with serving(Path(shutil.copytree(graded, tmp_path / "track"))) as running:
        page.goto(running.url)
    page.get_by_text("trecexam serve does not answer").wait_for(timeout=60_000)
    assert page.get_by_role("link", name="run1").first.is_visible()
