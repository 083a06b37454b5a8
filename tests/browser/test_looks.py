"""How the pages and the report look on a phone and on a screen, light and dark; TRECEXAM_SHOTS keeps pictures."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from readable import FAINT, NAMELESS
from served import Served, serving
from team import users_file

from trecexam.cli.main import run
from trecexam.extensions.campaign.plan import JudgingPlan, PlannedTask, write_plan
from trecexam.extensions.page import urls
from trecexam.extensions.page.judging import JudgeNext
from trecexam.extensions.page.users import Users
from trecexam.tables.plots.model import Drawing, Plot
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SHOTS = os.environ.get("TRECEXAM_SHOTS")
#: Widths of a phone and of a screen.
WIDTHS = (390, 1280)
GUIDELINES = "# What to look for\n\nRead the query first.\n\n- **Relevant**: it answers the query.\n- *Not*: it names its words alone.\n"
SCALE = '[judging]\nscale = ["not relevant", "related", "highly relevant", "perfect"]\nguidelines = "guidelines.md"\n'


class Place(NamedTuple):
    """The demo track, with its report, served to people with these tokens."""

    served: Served
    tokens: dict[str, str]

    @property
    def pages(self) -> dict[str, str]:
        """Name -> address, of every page of an organizer."""
        own = self.served.live.view
        support = own.others["support"].query("q01")
        query, rubric = own.query("q01"), urls.grader("rubric")
        doc, item = query.doc_ids[0], query.items[0].item_id
        return {
            "graders": "/",
            "leaderboard": rubric,
            "compared": f"{rubric}?baseline=bm25",
            "support": urls.grader("support"),
            "run": urls.run("dense"),
            "run-query": urls.run_query("dense", "q01"),
            "queries": urls.queries(),
            "query": urls.query("q01"),
            "items": urls.query("q01", show="items"),
            "query-runs": urls.query("q01", show="runs"),
            "item": urls.item("q01", item),
            "passage": urls.passage("q01", doc, item),
            "cited": urls.grader("support", f"/query/q01/passage/{urls.segment(support.doc_ids[0])}"),
            "bank": urls.bank("q01"),
            "disagreements": urls.disagreements(),
            "disagreements-items": urls.disagreements(show="items"),
            "judge": f"{urls.judge()}?judged=yes",
            "judge-support": urls.grader("support", "/judge"),
            "campaign": urls.campaign(),
            "agreement": urls.campaign_agreement(),
            **{f"section-{each.name}": urls.section(each.name) for each in own.sections},
            "holes": urls.holes(),
            "rejected": urls.rejected(),
            "grading": urls.work(),
            "search": urls.search(q="coffee"),
            "nowhere": "/nowhere",
            "assess": "/assess",
        }


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory, draw: Callable[[Plot], Drawing]) -> Iterator[Path]:
    """The demo track, which two assessors judge; its plots are drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trecexam.tables.plots.canvas._drawn", draw)
        yield make_track(tmp_path_factory)


def make_track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("looks") / "demo"
    run(["demo", str(root)])
    (root / "guidelines.md").write_text(GUIDELINES * 5)
    (root / "trecexam.toml").write_text((root / "trecexam.toml").read_text() + SCALE)
    (root / "runs" / "bad.run").write_text("no run\n")
    with serving(root) as served:
        assert served.live.view is not None
        passages = [(q, doc) for q in ("q01", "q02", "q03") for doc in served.live.view.query(q).doc_ids[:6]]
    tasks = [PlannedTask(who, *key, who == "bob") for who in ("ada", "bob", "orla") for key in passages]
    write_plan(TrackFolder.open(root), JudgingPlan(tuple(tasks)))
    lines = [
        "query_id\tdoc_id\titem_id\trating\twho\twhy\twhen",
        *(
            f"{q}\t{doc}\t\t{(number + (who == 'bob') * (number % 3 == 0)) % 4}\t{who}\tread\t2026-05-01T10:00:00Z"
            for who in ("ada", "bob")
            for number, (q, doc) in enumerate(passages[: 9 if who == "ada" else 7])
        ),
    ]
    (root / "judgments.tsv").write_text("\n".join(lines) + "\n")
    run(["watch", "--once", str(root)])
    return root


@pytest.fixture
def place(track: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    path, tokens = users_file(tmp_path_factory.mktemp("people"))
    with JudgeNext(track) as judging, serving(track, judging=judging, users=Users(path)) as served:
        yield Place(served, tokens)


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Literal["light", "dark"]:
    return request.param


@pytest.fixture(params=WIDTHS)
def look(browser: Browser, request: pytest.FixtureRequest, scheme: Literal["light", "dark"]) -> Iterator[Page]:
    """A tab of this width and colours."""
    context = browser.new_context(viewport={"width": request.param, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def shot(page: Page, name: str, scheme: str) -> None:
    """For who wants to look: TRECEXAM_SHOTS=FOLDER."""
    if SHOTS:
        width = page.viewport_size["width"]
        page.screenshot(path=f"{SHOTS}/{name}-{width}-{scheme}.png", full_page=True)


def log_in(page: Page, place: Place, who: str) -> None:
    page.goto(f"{place.served.url}/login")
    page.get_by_label("Token").fill(place.tokens[who])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_load_state()


def wrong(page: Page) -> list[str]:
    """What of a page does not fit, cannot be read, or has no name."""
    sideways = page.evaluate("document.scrollingElement.scrollWidth > innerWidth")
    return [*(["it scrolls sideways"] if sideways else []), *page.evaluate(FAINT), *page.evaluate(NAMELESS)]


@pytest.mark.plots
def test_every_page_fits_and_can_be_read(place: Place, look: Page, scheme: str) -> None:
    shot_of_login = place.served.url + "/login"
    look.goto(shot_of_login)
    found = {"login": wrong(look)}
    shot(look, "login", scheme)
    log_in(look, place, "orla")
    for name, address in place.pages.items():
        look.goto(place.served.url + address)
        while look.locator("#judge-waiting").count():
            time.sleep(0.1)
            look.reload()
        found[name] = wrong(look)
        shot(look, name, scheme)
    assert {name: trouble for name, trouble in found.items() if trouble} == {}


@pytest.mark.plots
@pytest.mark.parametrize("name", ["report.html", "rubric/report.html", "support/report.html"])
def test_every_report_fits_and_can_be_read(track: Path, look: Page, scheme: str, name: str) -> None:
    look.goto((track / "out" / name).as_uri())
    found = wrong(look)
    shot(look, name.replace("/", "-").removesuffix(".html"), scheme)
    assert found == []
