"""Labelling citations in a real Chromium: by the keys 1, 2, 3, on a phone, and without JavaScript."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from keys import press

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("httpx2")
pytest.importorskip("tenacity")

from cited import judging as supports
from cited import make_cited_track
from readable import FAINT, NAMELESS
from scripted_server import serving as answering
from served import Served, serving

import trecexam
from trecexam.extensions.page import child
from trecexam.extensions.page.judging import JudgeNext, Wish, look

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def cited(tmp_path: Path) -> Iterator[Served]:
    with answering(supports) as server:
        root = make_cited_track(tmp_path / "track", server.url, rubric=True)
        with trecexam.open_track(root) as track:
            track.update()
    make = lambda: child.Thread(look, root)  # noqa: E731
    with JudgeNext(root, make=make, rest=0) as judging, serving(root, judging=judging) as running:
        # The list is computed before the first visit, so no page waits for it.
        wanted, version = judging.of(Wish(grader="support")), running.live.version
        while not wanted.want(version).as_of or wanted.want(version).total:
            time.sleep(0.02)
        yield running


#: Where people judge for the grader.
JUDGE = "/grader/support/judge"


def test_keys_label_a_citation_go_to_the_next_and_undo(cited: Served, page: Page) -> None:
    page.goto(cited.url)
    page.get_by_role("link", name="support", exact=True).first.click()
    page.get_by_role("link", name="Judge", exact=True).click()
    sentence = page.locator("strong").text_content()
    assert page.locator("#left").text_content() == "4 more to judge."
    page.get_by_label("Your name").fill("Ann")
    page.locator("h1").click()
    press(page, "3")
    page.locator("#left", has_text="3 more").wait_for()
    assert "no support by Ann counts now." in (page.locator("#messages").text_content() or "")
    assert page.locator("#judge-grader").count() == 0
    press(page, "p")
    page.wait_for_selector("#judge-grader")
    assert page.locator("strong").text_content() == sentence
    press(page, "u")
    page.wait_for_selector("#judge-grader", state="detached")
    press(page, "4")
    press(page, "1")
    page.locator("#messages", has_text="full support by Ann").wait_for()
    with trecexam.open_track(cited.root) as track:
        rows = track["support"].override.ratings().table.rows
    assert [(row[3], row[-1]) for row in rows] == [(0, "replaced"), (None, "replaced"), (2, "counts")]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_support_page_fits_is_readable_and_works_without_javascript(
    cited: Served, browser: Browser, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, java_script_enabled=True)
    page = context.new_page()
    page.goto(cited.url + JUDGE)
    for _ in range(2):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.evaluate(FAINT) == []
        assert page.evaluate(NAMELESS) == []
        assert page.locator("h1").count() == 1
        if page.get_by_label("Your name").count():
            page.get_by_label("Your name").fill("Ann")
        labelled = page.url
        with page.expect_navigation():
            page.locator("#rate-form").get_by_role("button", name="Partial").click()
        page.goto(labelled)
    context.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(cited.url + JUDGE)
    while page.locator("#rate-form").count():
        if page.get_by_label("Your name").count():
            page.get_by_label("Your name").fill("Bob")
        page.locator("#rate-form").get_by_role("button", name="Full").click()
    assert "No sentence is left to label" in (page.locator("main").text_content() or "")
    context.close()
