"""The page "Support" in a real Chromium: by the keys 1, 2, 3, on a phone, and without a script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from keys import press

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("httpx2")
pytest.importorskip("tenacity")

from cited import judging, make_cited_track
from readable import FAINT, NAMELESS
from scripted_server import serving as answering
from served import Served, serving

import trecexam

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def cited(tmp_path: Path) -> Iterator[Served]:
    with answering(judging) as server:
        root = make_cited_track(tmp_path / "track", server.url, rubric=True)
        with trecexam.open_track(root) as track:
            track.update()
    with serving(root) as running:
        yield running


def test_the_keys_label_go_on_and_undo(cited: Served, page: Page) -> None:
    page.goto(cited.url)
    page.get_by_role("link", name="Support", exact=True).click()
    sentence = page.locator("strong").text_content()
    assert page.locator("#left").text_content() == "4 more to label."
    page.get_by_label("Your name").fill("Ann")
    page.locator("h1").click()
    press(page, "3")
    page.locator("#left", has_text="3 more").wait_for()
    assert "no_support by Ann counts now." in (page.locator("#messages").text_content() or "")
    assert page.locator("#judge-grader").count() == 0
    press(page, "p")
    page.wait_for_selector("#judge-grader")
    assert page.locator("strong").text_content() == sentence
    press(page, "u")
    page.wait_for_selector("#judge-grader", state="detached")
    press(page, "4")
    press(page, "1")
    page.locator("#messages", has_text="full_support").wait_for()
    with trecexam.open_track(cited.root) as track:
        rows = track["support"].override.ratings().table.rows
    assert [(row[3], row[-1]) for row in rows] == [(0, "replaced"), (None, "replaced"), (2, "counts")]


@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_can_be_read_and_works_without_a_script(cited: Served, browser: Browser, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, java_script_enabled=True)
    page = context.new_page()
    page.goto(cited.url + "/support")
    for _ in range(2):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(FAINT) == []
        assert page.evaluate(NAMELESS) == []
        assert page.locator("h1").count() == 1
        if page.get_by_label("Your name").count():
            page.get_by_label("Your name").fill("Ann")
        labelled = page.url
        with page.expect_navigation():
            page.get_by_role("button", name="Partial").click()
        page.goto(labelled)
    context.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(cited.url + "/support")
    while page.get_by_role("button", name="Full").count():
        if page.get_by_label("Your name").count():
            page.get_by_label("Your name").fill("Bob")
        page.get_by_role("button", name="Full").click()
    assert "No sentence is left to label" in (page.locator("main").text_content() or "")
    context.close()
