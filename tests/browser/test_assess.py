"""The page of assessors in a real Chromium: judging by keys, on a phone, and without JavaScript."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from keys import press

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from readable import FAINT, NAMELESS
from served import Served, serving
from team import users_file

from converters.overrides import read_overrides
from trecexam.extensions.campaign.plan import PlannedTask, write_plan
from trecexam.extensions.page.users import Users
from trecexam.folder import TrackFolder

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCALE = '[judging]\nscale = ["off topic", "related", "to the point"]\n'


@contextmanager
def opened(graded_once: Path, folder: Path, settings: str) -> Iterator[tuple[Served, str]]:
    track = Path(shutil.copytree(graded_once, folder / "track"))
    (track / "qrels.txt").unlink()
    config = track / "trecexam.toml"
    config.write_text(config.read_text() + settings)
    (folder / "people").mkdir()
    path, tokens = users_file(folder / "people")
    with serving(track, users=Users(path)) as page:
        yield page, tokens["ada"]


def log_in(page: Page, served: Served, token: str) -> None:
    page.goto(f"{served.url}/assess")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_selector("#judge")


def test_one_key_judges_a_passage_and_another_undoes_it(
    graded_once: Path, tmp_path: Path, page: Page
) -> None:
    with opened(graded_once, tmp_path, SCALE) as (served, token):
        log_in(page, served, token)
        address = page.url
        press(page, "2")
        page.wait_for_url(lambda url: url.split("?")[0] != address)
        press(page, "u")
        page.wait_for_url(address)
        page.get_by_label("Note").fill("2 and 1")
        page.locator("h1").click()
        press(page, "1")
        page.wait_for_url(lambda url: url.split("?")[0] != address)
        press(page, "p")
        page.wait_for_url(address)
        assert page.locator(".now").text_content() == "related 1"
        rows = [row for _, row in read_overrides(served.root / "judgments.tsv", lambda refused: None)]
    assert [(row.rating, row.note) for row in rows] == [(2, ""), (None, ""), (1, "2 and 1")]
    assert rows[0].seconds is not None


def test_items_are_rated_with_digits_arrows_and_enter(graded_once: Path, tmp_path: Path, page: Page) -> None:
    with opened(graded_once, tmp_path, "") as (served, token):
        log_in(page, served, token)
        address, n_items = page.url, page.locator("[data-question]").count()
        for _ in range(n_items):
            press(page, "3")
        press(page, "ArrowUp")
        press(page, "5")
        page.locator("h1").click()
        press(page, "Enter")
        page.wait_for_url(lambda url: url.split("?")[0] != address)
        rows = [row for _, row in read_overrides(served.root / "overrides.tsv", lambda refused: None)]
    assert [row.rating for row in rows] == [*[3] * (n_items - 2), 5, 3]


def test_a_finished_assessor_changes_a_judgment_from_the_list_by_keys_on_a_phone(
    graded_once: Path, tmp_path: Path, page: Page
) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    track = Path(shutil.copytree(graded_once, tmp_path / "planned"))
    write_plan(TrackFolder.open(track), [PlannedTask("ada", "q1", "q1-d00")])
    with opened(track, tmp_path, SCALE) as (served, token):
        log_in(page, served, token)
        press(page, "0")
        page.wait_for_selector("#judged")
        page.goto(f"{served.url}/assess")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate(FAINT) == []
        assert page.evaluate(NAMELESS) == []
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('#judged a')"):
                break
        page.keyboard.press("Enter")
        page.wait_for_selector("#rate-form")
        press(page, "2")
        page.wait_for_selector("#judged")
        assert "to the point" in (page.locator("#judged").text_content() or "")
        rows = [row for _, row in read_overrides(served.root / "judgments.tsv", lambda refused: None)]
    assert [row.rating for row in rows] == [0, 2]
