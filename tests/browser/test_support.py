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
from scripted_server import serving as answering
from served import Served, serving

import trecexam
from trecexam.extensions.page import child
from trecexam.extensions.page.judging import JudgeNext, Wish, look

if TYPE_CHECKING:
    from playwright.sync_api import Page


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
