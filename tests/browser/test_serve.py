"""The page in a real Chromium: what a reader sees, by mouse, by keyboard, on a phone, with hostile text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from served import Served, serving
from support import graded_track

import trecexam
from trecexam.extensions.page.urls import Urls

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

urls = Urls()


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graded_track(tmp_path_factory.mktemp("graded") / "track", queries=30)


@pytest.fixture
def served(graded: Path, tmp_path: Path) -> Iterator[Served]:
    with serving(Path(shutil.copytree(graded, tmp_path / "track"))) as running:
        yield running


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
