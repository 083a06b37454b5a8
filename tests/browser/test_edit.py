"""Edits in a real Chromium: two people at once, the bank, judging by keyboard, a daemon at the same time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from keys import press

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("httpx2", reason="the extra `openai` is not installed")

import scripted_server
from served import Served, serving
from support import ROOT, make_small_track

import trecexam
from converters.bank import read_bank
from trecexam.extensions.page import urls
from trecexam.extensions.page.grading import Regrader
from trecexam.extensions.page.judging import JudgeNext
from trecexam.line.store import GradeStore

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

PASSAGE = urls.passage("q1", "q1-d00")
BANK = "bank.questions.jsonl"
SHOTS = os.environ.get("TRECEXAM_SHOTS")


@pytest.fixture
def track(graded: Path) -> Path:
    """A graded track without official judgments, so that whole passages are rated in the grader's place."""
    (graded / "qrels.txt").unlink()
    return graded


@contextmanager
def working(root: Path, *, grade: bool = False, **options: object) -> Iterator[Served]:
    """The page with all background processes running."""
    with ExitStack() as stack:
        judging = stack.enter_context(JudgeNext(root))
        grader = stack.enter_context(Regrader(root, log=lambda line: None)) if grade else None
        yield stack.enter_context(serving(root, judging=judging, grader=grader, **options))


@pytest.fixture
def served(track: Path) -> Iterator[Served]:
    with working(track) as running:
        yield running


@pytest.fixture
def other(browser: Browser) -> Iterator[BrowserContext]:
    """Another person's browser."""
    made = browser.new_context(viewport={"width": 390, "height": 844})
    made.set_default_timeout(60_000)
    yield made
    made.close()


def until(holds: Callable[[], bool]) -> None:
    """Waits; an endless wait is ended by pytest-timeout."""
    while not holds():
        time.sleep(0.05)


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


def item(page: Page, number: int) -> Locator:
    """An item of q1 on the page of its bank."""
    return page.locator(f'[id="item-q1~2F{number}"]')


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


def test_all_edits_work_without_javascript(served: Served, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(served.url + PASSAGE)
    rate(page, 3, "Ann", "so so")
    page.get_by_text("3 by Ann counts now").wait_for()
    page.goto(served.url + urls.bank("q1"))
    page.get_by_label("Text").last.fill("Without script?")
    page.get_by_role("button", name="Add").click()
    page.get_by_text("Added: Without script?").wait_for()
    until(lambda: _judge(page, served))
    # Enter in a text field rates nothing.
    page.locator("#why").press("Enter")
    page.locator("#judge button[name=rating][value='2']").click()
    page.get_by_text(re.compile("by Ann counts now")).wait_for()
    page.locator("#judge-next").click()
    page.locator("#judge-previous").click()
    page.get_by_role("button", name=re.compile("^Undo the")).click()
    page.get_by_text("is withdrawn").wait_for()
    context.close()


def _judge(page: Page, served: Served) -> bool:
    page.goto(f"{served.url}/judge")
    return page.locator("#judge").count() > 0


def test_judging_works_by_keyboard_alone(served: Served, page: Page) -> None:
    page.goto(f"{served.url}/judge")
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


@pytest.fixture
def server() -> Iterator[scripted_server.Scripted]:
    with scripted_server.serving(scripted_server.slowly(0.05)) as running:
        yield running


def model_track(root: Path, url: str) -> Path:
    """A graded track whose grader is a model behind a server."""
    make_small_track(root, queries=2, docs=6, items=3)
    (root / "trecexam.toml").write_text(
        f'[track]\ndepth = 6\n[grader]\nname = "openai"\nmodel = "tiny"\nbase_url = "{url}"\n'
        "concurrency = 1\n[watch]\nsettle = 0.1\npoll = 0.2\n"
    )
    with trecexam.open_track(root) as track:
        track.update()
    return root


def stored(root: Path) -> int:
    with GradeStore(root / ".trecexam" / "grades.sqlite", write=False) as store:
        return store.count()


def test_an_edited_item_is_graded_again_and_no_other_item_is(
    tmp_path: Path, server: scripted_server.Scripted, page: Page
) -> None:
    root = model_track(tmp_path / "track", server.url)
    before, asked = stored(root), len(server.bodies)
    with working(root, grade=True) as served:
        page.goto(served.url + urls.bank("q1"))
        assert "graded on the query's 6 passages" in (page.locator("main").text_content() or "")
        shot(page, "bank")
        item(page, 1).get_by_text("Edit or retire").click()
        item(page, 1).get_by_label("Text").fill("Something else that is asked?")
        item(page, 1).get_by_label("Your name").first.fill("Ann")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Changed: Something else that is asked?").wait_for()
        item(page, 1).get_by_text("6 to be graded").wait_for()
        shot(page, "bank-changed")
        # The page shows the progress and the end.
        page.get_by_text(re.compile(r"3\d of 36 cells graded")).wait_for()
        item(page, 1).get_by_text("rated on 6 passages").wait_for(timeout=60_000)
        page.locator("#graded").wait_for(state="detached")
        assert stored(root) == before + 6
        assert len(server.bodies) == asked + 6
        assert all("Something else" in json.dumps(body) for body in server.bodies[asked:])
        # Retired: nothing is graded.
        item(page, 1).get_by_text("Edit or retire").click()
        item(page, 1).get_by_role("button", name="Retire it").click()
        page.get_by_text("Retired: Something else that is asked?").wait_for()
        page.get_by_role("button", name="Ask about it again").click()
        page.get_by_text("Taken back: Something else").wait_for()
        assert len(server.bodies) == asked + 6


def test_the_page_shows_why_grading_cannot_go_on(
    tmp_path: Path, server: scripted_server.Scripted, page: Page
) -> None:
    root = model_track(tmp_path / "track", server.url)
    server.script = lambda exchange: exchange.fail(401, "no such key")
    with working(root, grade=True) as served:
        page.goto(served.url + urls.bank("q1"))
        page.get_by_label("Text").last.fill("One more?")
        page.get_by_label("Your name").last.fill("Ann")
        page.get_by_role("button", name="Add").click()
        page.get_by_text("Grading stopped:").wait_for(timeout=60_000)
        assert "refuses requests" in (page.locator("#status").text_content() or "")
        shot(page, "grading-failed")
        server.script = scripted_server.Exchange.say
        page.get_by_label("Text").last.fill("And one more?")
        page.get_by_role("button", name="Add").click()
        page.get_by_text("Grading stopped:").wait_for(state="detached", timeout=60_000)
        until(lambda: stored(root) == 36 + 12)


def test_a_daemon_that_grades_at_the_same_time_reads_what_the_page_writes(
    tmp_path: Path, server: scripted_server.Scripted, page: Page
) -> None:
    root = model_track(tmp_path / "track", server.url)
    code = f"import sys; sys.path[:] = {sys.path!r}; from trecexam.cli import main; main()"
    watch = subprocess.Popen(
        [sys.executable, "-c", code, "watch", str(root)], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        assert watch.stderr is not None
        assert "watching" in watch.stderr.readline()
        with working(root, grade=True) as served:
            page.goto(served.url + urls.bank("q1"))
            for number in range(3):
                page.get_by_label("Text").last.fill(f"Number {number}?")
                if number == 0:
                    page.get_by_label("Your name").last.fill("Ann")
                page.get_by_role("button", name="Add").click()
                page.get_by_text(f"Added: Number {number}?").wait_for()
                # Pages respond while it works.
                page.goto(served.url + PASSAGE)
                page.get_by_role("heading", name="Passage").first.wait_for()
                page.goto(served.url + urls.bank("q1"))
            page.get_by_text(f"Process {watch.pid} grades them").wait_for()
            item(page, 5).get_by_text("rated on 6 passages").wait_for(timeout=60_000)
            assert [item.text for item in read_bank(root / BANK)][3:6] == [f"Number {n}?" for n in range(3)]
            assert stored(root) == 36 + 18
    finally:
        watch.terminate()
        watch.communicate(timeout=20)
