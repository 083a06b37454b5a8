"""Judging by keyboard in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from keys import press

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from served import Served, serving

from trecexam.extensions.page.judging import JudgeNext

if TYPE_CHECKING:
    from playwright.sync_api import Page


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


def test_judging_works_by_keyboard_alone(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/judge?judged=yes")
    page.locator("#judge").wait_for(timeout=60_000)
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
    lines = (served.root / "overrides.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[3] for line in lines] == ["4", ""]
