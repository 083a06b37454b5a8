"""Edits in a real Chromium: two people at once, and judging by keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from keys import press

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from served import Served, serving

from trecexam.extensions.page import urls
from trecexam.extensions.page.judging import JudgeNext

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PASSAGE = urls.passage("q1", "q1-d00")
BANK = "bank.questions.jsonl"
SHOTS = os.environ.get("TRECEXAM_SHOTS")


@pytest.fixture
def track(graded: Path) -> Path:
    """A graded track without official judgments, so that whole passages are rated in the grader's place."""
    (graded / "qrels.txt").unlink()
    return graded


@pytest.fixture
def served(track: Path) -> Iterator[Served]:
    """The page with its search for judgments running."""
    with JudgeNext(track) as judging, serving(track, judging=judging) as running:
        yield running


@pytest.fixture
def other(browser: Browser) -> Iterator[BrowserContext]:
    """Another person's browser."""
    made = browser.new_context(viewport={"width": 390, "height": 844})
    made.set_default_timeout(60_000)
    yield made
    made.close()


def shot(page: Page, name: str) -> None:
    """To look at the page: TRECEXAM_SHOTS=FOLDER."""
    for width in (1280, 390) if SHOTS else ():
        page.set_viewport_size({"width": width, "height": 900})
        page.screenshot(path=f"{SHOTS}/{name}-{width}.png", full_page=True)
    if SHOTS:
        page.set_viewport_size({"width": 1280, "height": 900})


def rate(page: Page, rating: int, who: str | None, why: str) -> None:
    form = page.locator("#rate-1")
    form.locator("summary").click()
    form.get_by_label(str(rating), exact=True).check()
    form.get_by_label("Why").fill(why)
    if who:
        form.get_by_label("Your name").first.fill(who)
    form.get_by_role("button", name="Rate", exact=True).click()


def overrides(root: Path) -> list[list[str]]:
    lines = (root / "overrides.tsv").read_text().splitlines()[1:]
    return [line.split("\t")[:6] for line in lines]


def test_concurrent_ratings_of_a_cell_are_not_lost_and_conflicts_are_shown(
    served: Served, page: Page, other: BrowserContext
) -> None:
    theirs = other.new_page()
    page.goto(served.url + PASSAGE)
    theirs.goto(served.url + PASSAGE)
    # Ann's new state rejects Bob's edit.
    theirs.locator("#rate-1 summary").click()
    theirs.locator("#rate-1").get_by_label("1", exact=True).check()
    theirs.locator("#rate-1").get_by_label("Why").fill("it does not")
    theirs.locator("#rate-1").get_by_label("Your name").first.fill("Bob")
    rate(page, 5, "Ann", "it does")
    page.get_by_text("5 by Ann counts now").wait_for()
    shot(page, "rated")
    theirs.locator("#notice").wait_for(state="visible")
    theirs.locator("#rate-1").get_by_role("button", name="Rate", exact=True).click()
    theirs.get_by_role("heading", name="Somebody else was faster").wait_for()
    assert theirs.evaluate("document.documentElement.scrollWidth") <= 390
    shot(theirs, "conflict")
    assert overrides(served.root) == [["q1", "q1-d00", "q1/0", "5", "Ann", "it does"]]
    theirs.get_by_role("button", name="Say 1 all the same").click()
    theirs.get_by_text("1 by Bob counts now, in place of Ann's 5").wait_for()
    assert [row[3:5] for row in overrides(served.root)] == [["5", "Ann"], ["1", "Bob"]]
    # Ann's page updates automatically.
    page.locator("#item-1").get_by_text("by Bob").wait_for()
    page.locator("#rate-1 summary").click()
    page.get_by_role("button", name="Withdraw the 1").click()
    page.get_by_text("the rating 1 by Bob is withdrawn").wait_for()
    assert page.get_by_text("Your name").count() == 0  # remembered


def test_judging_works_by_keyboard_alone(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/judge?judged=yes")
    page.locator("#judge").wait_for(timeout=60_000)
    shot(page, "judge")
    one = page.url
    # No name is known yet: the key asks for a name and rates nothing.
    press(page, "4")
    assert page.evaluate("document.activeElement.name") == "who"
    # In a text field, keys are letters.
    page.keyboard.type("Ann 5 n p u ?")
    assert page.url == one
    press(page, "Tab")
    page.evaluate("document.activeElement.blur()")
    press(page, "4")
    page.get_by_text("4 by Ann 5 n p u ? counts now").wait_for()
    two = page.url
    assert two != one
    shot(page, "judge-next")
    press(page, "n")
    page.wait_for_url(lambda url: url not in (one, two))
    press(page, "p")
    page.wait_for_url(two)
    press(page, "u")
    page.wait_for_url(one)
    page.get_by_text("is withdrawn").wait_for()
    press(page, "?")
    page.get_by_text("undo your last rating").wait_for()
    press(page, "Control+n")  # the browser's own
    assert page.url == one
    page.get_by_role("button", name="Shortcuts are on").click()
    page.get_by_role("button", name="Shortcuts are off").wait_for()
    page.evaluate("document.activeElement.blur()")
    press(page, "3")
    page.wait_for_timeout(300)
    assert page.url == one
    assert [row[3] for row in overrides(served.root)] == ["4", ""]
