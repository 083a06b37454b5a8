"""A team's page in a real Chromium: log in, rate, be logged out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from served import serving
from team import users_file

from trecexam.extensions.page.users import Users, add_tokens, hashes_file

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page


@pytest.fixture
def team(graded_once: Path, tmp_path: Path) -> Iterator[dict[str, Any]]:
    track = Path(shutil.copytree(graded_once, tmp_path / "track"))
    # With official judgments, people judge whole passages on their scale.
    (track / "qrels.txt").unlink()
    path, tokens = users_file(tmp_path)
    with serving(track, users=Users(path)) as page:
        yield {"url": f"{page.url}/", "tokens": tokens, "track": track, "users": path, "live": page.live}


def log_in(page: Page, team: dict[str, Any], name: str) -> None:
    page.get_by_label("Token").fill(team["tokens"][name])
    page.get_by_role("button", name="Log in").click()


def test_a_logged_out_user_is_told_and_can_continue_after_login_in_another_tab(
    context: BrowserContext, team: dict[str, Any]
) -> None:
    # Without the fixture `page`: a rejected request is an error in the console.
    page = context.new_page()
    page.goto(f"{team['url']}query/q1/passage/q1-d00")
    log_in(page, team, "orla")
    page.locator("#rate-whole summary").click()
    page.locator("#rate-whole").get_by_label("Why").fill("typed before")
    page.locator("#rate-whole").get_by_label("partially relevant and complete").check()
    hashes_file(team["users"]).unlink()
    page.get_by_text("You are logged out.").wait_for()
    team["tokens"] |= add_tokens(team["users"], ["orla"])
    other = context.new_page()
    other.goto(team["url"])
    log_in(other, team, "orla")
    other.get_by_role("button", name="Log out").wait_for()
    page.bring_to_front()
    page.get_by_text("You are logged out.").wait_for(state="hidden")
    page.locator("#rate-whole").get_by_role("button", name="Rate").click()
    page.get_by_text(re.compile("by orla counts now")).wait_for()
