"""The page of a track with several graders: a joint start page, and pages for each grader."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from headings import score_columns
from rag_track import make_demo_with_two_graders
from served import client_of, csrf_of, rows_of
from starlette.testclient import TestClient
from team import Team, users_file

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.campaign.plan import PlannedTask, write_plan
from trecexam.extensions.page.urls import Urls, segment
from trecexam.extensions.page.users import Users
from trecexam.folder import TrackFolder

urls = Urls()

LISTS = ("", "/result/queries", "/result/disagreements")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven runs; `rubric` rates all, and `support` labels what the one run of responses cites."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    make_demo_with_two_graders(folder)
    assert run(["watch", str(folder), "--once"]) == 0
    return folder


@pytest.fixture(scope="module")
def pages(demo: Path) -> Iterator[TestClient]:
    with client_of(demo) as client:
        yield client


def words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def header(page: str) -> dict[str, str]:
    """The graders in the header -> their links."""
    nav = page.partition('aria-label="Graders">')[2].partition("</nav>")[0]
    return {unescape(name): href for href, name in re.findall(r'href="([^"]*)"[^>]*><bdi>([^<]*)<', nav)}


def here(page: str) -> list[str]:
    return re.findall(r'aria-current="true"><bdi>([^<]*)</bdi>', page)


def test_the_first_page_is_the_table_of_all_graders(demo: Path, pages: TestClient) -> None:
    with trecexam.open_track(demo) as track:
        board = track.leaderboard()
    page = pages.get("/").text
    assert [row[1] for row in rows_of(page)] == [row.run for row in board.rows]
    assert [note for note in board.notes if note.replace("`", "") not in words(page)] == []
    assert 'href="/grader/rubric/run/dense"' in page
    heads = re.findall(r'<th scope="col"[^>]*>\s*<a [^>]*>([^<]*)', page.replace("<wbr>", ""))
    assert score_columns(heads) == ["#", *board.measures]
    assert re.search(
        r"rubric : 1,764 of 1,764 cells graded by .* support : 33 of 33 cells graded", words(page)
    )


@pytest.mark.parametrize("grader", ["rubric", "support"])
@pytest.mark.parametrize("page", LISTS)
def test_each_grader_has_its_pages_and_the_header_links_to_the_same_page_of_others(
    pages: TestClient, grader: str, page: str
) -> None:
    answer = pages.get(f"/grader/{grader}{page}")
    assert answer.status_code == 200
    assert here(answer.text) == [grader]
    expected = {name: f"/grader/{name}{page}" for name in ("rubric", "support")}
    assert header(answer.text) == {"All graders": "/", **expected}


def _cells_of(pages: TestClient, grader: str) -> Iterator[dict[str, str]]:
    """Cells of a grader, as form fields."""
    view = pages.app.state.live.view.of(grader)  # type: ignore[attr-defined]
    for query_id in view.queries:
        state = view.query(query_id)
        for place, doc_id in enumerate(state.doc_ids):
            for _, item in state.items_of(place):
                yield {"query": query_id, "doc": doc_id, "item": item.item_id}


def _rate(pages: TestClient, grader: str, cell: dict[str, str], rating: str) -> Any:
    form = {"csrf": csrf_of(pages), **cell, "rating": rating, "who": "ann", "why": "read it"}
    return pages.post(f"/grader/{grader}/override", data=form)


@pytest.fixture
def track(demo: Path, tmp_path: Path) -> Path:
    """The demo with a third grader, with the same items as `rubric`."""
    root = Path(shutil.copytree(demo, tmp_path / "track"))
    settings = root / "trecexam.toml"
    recorded = re.search(r"(?m)^recorded = .*$", settings.read_text())
    assert recorded is not None
    settings.write_text(
        f'{settings.read_text()}\n[graders.second]\nkind = "rubric"\nname = "recorded"\n{recorded[0]}\n'
    )
    return root


@pytest.mark.parametrize(
    ("grader", "file"),
    [
        ("rubric", "overrides.tsv"),
        ("support", "overrides.support.tsv"),
        ("second", "overrides.second.tsv"),
    ],
)
def test_people_rate_for_each_grader_in_a_separate_file(track: Path, grader: str, file: str) -> None:
    with client_of(track) as pages:
        cell = next(_cells_of(pages, grader))
        passage = segment(cell["doc"])
        page = pages.get(f"/grader/{grader}/query/{cell['query']}/passage/{passage}").text
        assert set(re.findall(r'<form method="post" action="([^"]*)"', page)) == {
            f"/grader/{grader}/override"
        }
        assert _rate(pages, grader, cell, "1").status_code == 303
        shown = {
            name: pages.app.state.live.view.of(name).query(cell["query"]).human  # type: ignore[attr-defined]
            for name in ("rubric", "support", "second")
        }
        assert {name for name, human in shown.items() if human} == {grader}
        with trecexam.open_track(track) as loaded:
            counting = {name: loaded[name].override.ratings().table.rows for name in shown}
        assert {name for name, rows in counting.items() if rows} == {grader}
    assert [path.name for path in track.glob("overrides*")] == [file]


def test_a_plan_belongs_to_the_grader_whose_pool_has_its_passages(track: Path, tmp_path: Path) -> None:
    settings = track / "trecexam.toml"
    head, support = settings.read_text().split("[graders.support]")
    support, _, scores = support.partition("[scores]")
    first = head.replace("[graders.rubric]", f"[graders.support]{support}[graders.rubric]")
    settings.write_text(f"{first}[scores]{scores}")
    write_plan(TrackFolder.open(track), [PlannedTask("ada", "q01", "heat-pump-01")])
    path, tokens = users_file(tmp_path)
    with client_of(track, users=Users(path)) as client:
        assert client.app.state.live.view.grader_name == "support"  # type: ignore[attr-defined]
        team = Team(client.app, path, tokens)
        ada, orla = team.client("ada"), team.client("orla")
        assert ada.get("/", follow_redirects=True).url.path.startswith("/grader/rubric/assess/passage/")
        assert "0 of 1 passage rated, 1 left." in ada.get("/assess", follow_redirects=True).text
        assert orla.get("/campaign").headers["location"] == "/grader/rubric/campaign"
        assert rows_of(orla.get("/grader/rubric/campaign").text)[0][:4] == ["ada", "1", "0", "1"]
        assert "There is no plan" in orla.get("/grader/support/campaign").text


def test_editing_the_bank_affects_the_graders_that_use_it(track: Path) -> None:
    with client_of(track) as pages:
        form = {"csrf": csrf_of(pages), "text": "Who may build one?", "kind": "question", "who": "ann"}
        answer = pages.post("/grader/second/bank/q01/item", data=form)
        assert answer.headers["location"].startswith("/grader/second/bank/q01#")
        assert "Who may build one?" in pages.get("/grader/second/bank/q01").text
        assert pages.get("/grader/support/bank/q01").status_code == 404
        assert pages.post("/grader/support/bank/q01/item", data=form).status_code == 404
        assert "/bank/" not in pages.get("/grader/support/query/q01?show=items").text


def test_if_the_first_grader_cannot_go_on_people_rate_for_the_next(demo: Path, tmp_path: Path) -> None:
    track = tmp_path / "track"
    shutil.copytree(demo, track)
    for bank in track.glob("bank*.jsonl"):
        bank.unlink()
    settings = track / "trecexam.toml"
    settings.write_text(re.sub(r"(?m)^bank = .*\n", "", settings.read_text()))
    ratings = sorted(path.name for path in track.glob("overrides*"))
    with client_of(track) as client:
        first = client.get("/")
        assert first.status_code == 200
        assert "support:SupportF1" in first.text
        assert "no test bank" in words(first.text)
        assert client.get("/grader/support/result/queries").status_code == 200
        cell = {"query": "q01", "doc": "heat-pump-06", "item": "", "rating": "3", "who": "ann", "why": "so"}
        answer = client.post("/override", data={"csrf": csrf_of(client), **cell})
        assert answer.status_code == 404
        assert "Nothing was saved: the grader rubric of this form cannot grade" in words(answer.text)
        assert sorted(path.name for path in track.glob("overrides*")) == ratings
        # Forms of pages without a grader in the URL name their grader.
        key = next(key for key in _cells_of(client, "support"))
        page = client.get(f"/query/{key['query']}/passage/{key['doc']}").text
        assert 'action="/grader/support/override"' in page
        assert _rate(client, "support", key, "2").status_code == 303
    assert [path.name for path in track.glob("overrides*")] == ["overrides.support.tsv"]


def test_assessors_judge_blind_for_each_grader(track: Path, tmp_path: Path) -> None:
    path, tokens = users_file(tmp_path)
    with client_of(track, users=Users(path)) as client:
        browser = Team(client.app, path, tokens).client("ada")
        address = browser.get("/grader/support/assess").headers["location"]
        assert address.startswith("/grader/support/assess/passage/")
        page = browser.get(address).text
        assert header(page) == {name: f"/grader/{name}/assess" for name in ("rubric", "support", "second")}
        assert here(page) == ["support"]
        assert "rag-demo" not in page
        assert "Does the passage say what each sentence says?" in page
        assert '<strong dir="auto">' in page
        assert '<span class="soft" dir="auto">' in page, "the sentences around it"
        choices = re.findall(r'value="(\d)"[^>]*(?:data-key|shortcuts)="(\d)"[^>]*>\s?([a-z ]+) <kbd>', page)
        assert choices[:3] == [
            ("2", "1", "full support"),
            ("1", "2", "partial support"),
            ("0", "3", "no support"),
        ]
        n_sentences = page.count("data-question") or 1
        hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.partition('id="cannot"')[0])
        rated = {f"item-{n}": "1" for n in range(1, n_sentences + 1)}
        done = browser.post("/grader/support/assess", data={**dict(hidden), **rated})
        assert done.status_code == 303
        assert done.headers["location"].partition("?")[0] != address
        assert "1 of" in browser.get(done.headers["location"]).text
    rows = list(csv.DictReader((track / "overrides.support.tsv").read_text().splitlines(), delimiter="\t"))
    assert [(row["rating"], row["who"]) for row in rows] == [("1", "ada")] * n_sentences
    assert not (track / "overrides.tsv").exists()
