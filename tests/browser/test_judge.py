"""Judging by keyboard in a real Chromium, without logins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from keys import press

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from served import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_who_gives_a_name_judges_by_keys_skips_goes_back_and_switches_keys_off(
    graded: Path, page: Page
) -> None:
    (graded / "qrels.txt").unlink()
    settings = graded / "trecexam.toml"
    settings.write_text(settings.read_text() + '[judging]\nscale = ["no", "partly", "yes"]\n')
    with serving(graded) as served:
        page.goto(f"{served.url}/")
        page.get_by_role("link", name="Judge", exact=True).click()
        page.get_by_label("Your name").fill("Ann")
        page.keyboard.press("Enter")
        page.wait_for_selector("#rate-form")
        one = page.url
        # In a text field, keys are letters.
        page.get_by_label("Note").fill("2 n p u ?")
        assert page.url == one
        page.evaluate("document.activeElement.blur()")
        press(page, "2")
        page.wait_for_url(lambda url: url.split("?")[0] != one)
        two = page.url
        press(page, "n")
        page.wait_for_url(lambda url: url.split("?")[0] not in (one, two.split("?")[0]))
        press(page, "p")
        page.wait_for_url(two.split("?")[0])
        press(page, "?")
        page.get_by_text("next, without a judgment").wait_for()
        press(page, "Control+n")  # the browser's own
        page.get_by_role("button", name="Shortcuts are on").click()
        page.get_by_role("button", name="Shortcuts are off").wait_for()
        page.evaluate("document.activeElement.blur()")
        press(page, "1")
        page.wait_for_timeout(300)
        assert page.url == two.split("?")[0]
        lines = (graded / "judgments.tsv").read_text().splitlines()
    header, row = (line.split("\t") for line in lines)
    assert (row[header.index("rating")], row[header.index("who")]) == ("2", "Ann")
