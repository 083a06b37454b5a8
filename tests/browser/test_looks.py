"""Layout of pages and report, on phone and screen, light and dark. TRECEXAM_SHOTS=FOLDER keeps images."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from rag_track import make_demo_with_two_graders
from readable import FAINT, NAMELESS, SQUEEZED
from served import Served, serving
from team import users_file

from trecexam.cli.main import run
from trecexam.extensions.campaign.plan import PlannedTask, write_plan
from trecexam.extensions.page.urls import Urls
from trecexam.extensions.page.users import Users
from trecexam.folder import TrackFolder
from trecexam.results.plots.canvas import Drawing
from trecexam.results.result import Plot

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

urls = Urls()

SHOTS = os.environ.get("TRECEXAM_SHOTS")
DL19 = {
    "queries": "queries.tsv",
    "bank": "bank.questions.jsonl.gz",
    "passages": "passages.jsonl.gz",
    "qrels": "qrels.txt",
    "runs": "runs",
    "recorded": "graded.flan-t5-large.jsonl.gz",
}
#: Widths of a phone and of a screen.
WIDTHS = (390, 1280)
GUIDELINES = (
    "# What to look for\n\nRead the query first.\n\n- **Relevant**: it answers the query.\n- *Not*: no.\n"
)
SCALE = """[judging]
scale = ["not relevant", "related", "highly relevant", "perfect"]
guidelines = "guidelines.md"
"""


class Place(NamedTuple):
    """The demo track, with its report, served to people with these tokens."""

    served: Served
    tokens: dict[str, str]

    @property
    def pages(self) -> dict[str, str]:
        """Name -> address, of every page of an organizer."""
        own = self.served.live.view
        support = own.other_views["support"].query("q01")
        query, rubric = own.query("q01"), urls.of("rubric").board()
        doc, item = query.doc_ids[0], query.items[0].item_id
        return {
            "graders": "/",
            "leaderboard": rubric,
            "compared": f"{rubric}?baseline=bm25",
            "support": urls.of("support").board(),
            "run": urls.run("dense"),
            "run-query": urls.query("q01", run="dense"),
            "queries": urls.result("queries"),
            "query": urls.query("q01"),
            "items": urls.query("q01", show="items"),
            "query-runs": urls.query("q01", show="runs"),
            "passage": urls.passage("q01", doc, item=item),
            "cited": urls.of("support").passage("q01", support.doc_ids[0]),
            "bank": urls.bank("q01"),
            "disagreements": urls.result("disagreements"),
            "judge": urls.assess(),
            "judge-support": urls.of("support").assess(),
            "campaign": urls.campaign(),
            "agreement": urls.agreement(),
            **{f"section-{each.name}": urls.section(each.name) for each in own.sections},
            "rejected": urls.result("rejected"),
            "grading": urls.result("grading"),
            "nowhere": "/nowhere",
            "assess": "/assess",
        }


@pytest.fixture(scope="module")
def track(tmp_path_factory: pytest.TempPathFactory, draw: Callable[[Plot], Drawing]) -> Iterator[Path]:
    """The demo track, which two assessors judge; its plots are drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trecexam.results.plots.canvas._drawn", draw)
        yield make_track(tmp_path_factory)


def make_track(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("looks") / "demo"
    make_demo_with_two_graders(root)
    run(["watch", "--once", str(root)])
    (root / "guidelines.md").write_text(GUIDELINES * 5)
    (root / "trecexam.toml").write_text((root / "trecexam.toml").read_text() + SCALE)
    (root / "runs" / "bad.run").write_text("no run\n")
    with serving(root) as served:
        assert served.live.view is not None
        passages = [(q, doc) for q in ("q01", "q02", "q03") for doc in served.live.view.query(q).doc_ids[:6]]
    tasks = [PlannedTask(who, *key, who == "bob") for who in ("ada", "bob", "orla") for key in passages]
    write_plan(TrackFolder.open(root), tasks)
    lines = [
        "query_id\tdoc_id\titem_id\trating\twho\twhy\twhen",
        *(
            # bob differs on every third.
            f"{q}\t{doc}\t\t{(number + (who == 'bob' and not number % 3)) % 4}\t{who}\tread\t2026-05-01"
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
    with serving(track, users=Users(path)) as served:
        yield Place(served, tokens)


@pytest.fixture(params=[(390, "dark"), (1280, "light")], ids=["phone, dark", "screen, light"])
def page_tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A tab of this width and colours."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def phone(page: Page) -> Page:
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    return page


def shot(page: Page, name: str) -> None:
    """To look at the page: TRECEXAM_SHOTS=FOLDER."""
    if SHOTS:
        width = page.viewport_size["width"]
        page.screenshot(path=f"{SHOTS}/{name}-{width}.png", full_page=True)


def log_in(page: Page, place: Place, who: str) -> None:
    page.goto(f"{place.served.url}/login")
    page.get_by_label("Token").fill(place.tokens[who])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_load_state()


def go(page: Page, place: Place, address: str) -> None:
    """Opens a page."""
    page.goto(place.served.url + address)


def wrong(page: Page) -> list[str]:
    """What on a page does not fit, is unreadable, or has no name."""
    sideways = page.evaluate("document.scrollingElement.scrollWidth > innerWidth")
    text = page.locator("body").inner_text()
    return [
        *["it scrolls sideways"] * sideways,
        *["an interval of nothing"] * ("– to –" in text),  # noqa: RUF001
        *re.findall(r"(?<![\d.,-])1 (?:runs|queries|passages|items|lines|tasks|cells)\b(?! on)", text),
        *page.evaluate(FAINT),
        *page.evaluate(NAMELESS),
        *page.evaluate(SQUEEZED),
    ]


@pytest.mark.plots
def test_every_page_fits_and_is_readable(place: Place, page_tab: Page) -> None:
    page_tab.goto(f"{place.served.url}/login")
    found = {"login": wrong(page_tab)}
    shot(page_tab, "login")
    log_in(page_tab, place, "orla")
    for name, address in place.pages.items():
        go(page_tab, place, address)
        found[name] = wrong(page_tab)
        if not name.startswith("section-"):
            headings = page_tab.locator("main thead th").all_inner_texts()
            found[name] += [text for text in headings if "_" in text and text.islower()]
        shot(page_tab, name)
    assert {name: trouble for name, trouble in found.items() if trouble} == {}


@pytest.mark.plots
@pytest.mark.parametrize("name", ["report.html", "rubric/report.html", "support/report.html"])
def test_every_report_fits_and_is_readable(track: Path, page_tab: Page, name: str) -> None:
    page_tab.goto((track / "out" / name).as_uri())
    found = wrong(page_tab)
    shot(page_tab, name.replace("/", "-").removesuffix(".html"))
    assert found == []


@pytest.mark.plots
def test_the_header_marks_the_page_and_has_no_empty_row(place: Place, page: Page) -> None:
    log_in(page, place, "orla")
    listed = {
        "Queries": "queries", "Disagreements": "disagreements", "Campaign": "campaign",
        "Holes": "section-holes", "Rejected 1": "rejected", "Grading": "grading",
    }  # fmt: skip
    for name, of in listed.items():
        go(page, place, place.pages[of])
        assert page.locator("header nav [aria-current=page]").all_inner_texts() == [name]
    for of in ("graders", "campaign", "assess"):
        go(page, place, place.pages[of])
        header, user = page.locator("header").bounding_box(), page.locator(".leave").bounding_box()
        assert header is not None
        assert user is not None
        assert user["x"] + user["width"] == pytest.approx(header["width"] - 20, abs=2)
        assert header["height"] < 105


@pytest.mark.plots
def test_the_header_is_one_row_on_a_phone_and_shows_where_the_reader_is(place: Place, phone: Page) -> None:
    for who, pages in {"orla": ("graders", "leaderboard", "grading", "assess"), "ada": ("assess",)}.items():
        log_in(phone, place, who)
        for name in pages:
            go(phone, place, place.pages[name])
            header = phone.locator("header").bounding_box()
            assert header is not None
            assert header["height"] < 60
            for link in phone.locator("header nav[aria-label=Pages] [aria-current=page]").all():
                box, brand = link.bounding_box(), phone.locator(".brand").bounding_box()
                assert box is not None
                assert brand is not None
                assert brand["x"] + brand["width"] <= box["x"] < box["x"] + box["width"] <= WIDTHS[0]
        phone.get_by_role("button", name="Log out").click()


@pytest.mark.plots
def test_the_first_score_is_visible_on_a_phone(place: Place, phone: Page) -> None:
    log_in(phone, place, "orla")
    for address in ("/", urls.of("rubric").board(), urls.of("rubric").board(baseline="bm25")):
        phone.goto(place.served.url + address)
        box = phone.locator("tbody tr:first-child td.n").filter(has_text=".").first.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= WIDTHS[0]
        assert box["y"] + box["height"] <= 900
        table, form = (phone.locator(each).first.bounding_box() for each in ("main table", "main form"))
        assert table is not None
        assert form is not None
        assert table["y"] < form["y"]


@pytest.mark.plots
@pytest.mark.parametrize("width", WIDTHS)
def test_the_steps_of_a_scale_are_in_one_row_or_one_column(place: Place, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    log_in(page, place, "orla")
    go(page, place, "/assess")
    boxes = [button.bounding_box() for button in page.locator(".steps button").all()]
    assert len(boxes) > 2
    assert 1 in {len({box[side] for box in boxes if box}) for side in ("x", "y")}


@pytest.mark.plots
def test_guidelines_are_open_for_the_first_passage_only(place: Place, page: Page) -> None:
    log_in(page, place, "orla")
    page.goto(f"{place.served.url}/assess")
    assert page.locator("header .brand").text_content() == "demo"
    assert page.locator("#guidelines[open]").count() == 1
    page.get_by_role("button", name="related").first.click()
    page.wait_for_selector("#guidelines:not([open])")


@pytest.mark.plots
def test_a_report_of_37_runs_prints_on_ten_pages(dl19: Path, tmp_path: Path, page: Page) -> None:
    given = {name: str(dl19 / file) for name, file in DL19.items()}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    run(["init", str(tmp_path / "track"), *words, "--link"])
    run(["watch", "--once", str(tmp_path / "track")])
    page.goto((tmp_path / "track" / "out" / "report.html").as_uri())
    assert 5 <= len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 10
    # What is wider than the paper makes all letters smaller.
    page.set_viewport_size({"width": 703, "height": 1000})
    page.emulate_media(media="print")
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 1.1 * 703
