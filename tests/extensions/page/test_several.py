"""The page of a track with several graders: it begins with all of them, and each has its own pages."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from served import client_of, csrf_of
from starlette.testclient import TestClient

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.page.export.exporting import export

LISTS = ("", "/queries", "/disagreements", "/holes")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven runs; `rubric` rates all, and `support` labels what the one run of responses cites."""
    folder = tmp_path_factory.mktemp("demo") / "demo"
    assert run(["demo", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def pages(demo: Path) -> Iterator[TestClient]:
    with client_of(demo) as client:
        yield client


def words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def header(page: str) -> dict[str, str]:
    """The graders in the header -> where they lead."""
    nav = page.partition('aria-label="Graders">')[2].partition("</nav>")[0]
    return {unescape(name): href for href, name in re.findall(r'href="([^"]*)"[^>]*><bdi>([^<]*)<', nav)}


def here(page: str) -> list[str]:
    return re.findall(r'aria-current="true"><bdi>([^<]*)</bdi>', page)


def test_it_begins_with_the_table_of_all_graders(demo: Path, pages: TestClient) -> None:
    with trecexam.open_track(demo) as track:
        board = track.leaderboard()
    table = list(csv.DictReader(pages.get("/?format=csv").text.splitlines()))
    assert [row["run"] for row in table] == [row.run for row in board.rows]
    assert list(table[0]) == list(board.table.header)
    page = pages.get("/").text
    assert all(note in words(page) for note in board.notes)
    assert 'href="/run/dense"' in page
    heads = re.findall(r'<th scope="col"[^>]*>\s*<a [^>]*>([^<]*)', page)
    assert heads == ["#", "run", "rubric:Cover", "support:F1"], "those that a terminal shows"
    assert re.search(
        r"rubric : 2,940 of 2,940 cells graded by .* support : 33 of 33 cells graded", words(page)
    )


def test_its_table_is_ordered_and_searched(pages: TestClient) -> None:
    def runs(address: str) -> list[str]:
        return re.findall(r'<th scope="row"><a [^>]*><bdi>([^<]*)', pages.get(address).text)

    assert runs("/?q=dense") == ["dense-rerank", "dense"]
    assert runs("/?sort=run")[:2] == ["bm25", "bm25-rm3"]
    assert runs("/?sort=-support:SupportF1")[0] == "rag-demo", "runs without a value are last"


@pytest.mark.parametrize("grader", ["rubric", "support"])
@pytest.mark.parametrize("page", LISTS)
def test_each_grader_has_its_pages_and_the_header_leads_to_the_same_page_of_the_other(
    pages: TestClient, grader: str, page: str
) -> None:
    answer = pages.get(f"/grader/{grader}{page}")
    assert answer.status_code == 200
    assert here(answer.text) == [grader]
    expected = {name: f"/grader/{name}{page}" for name in ("rubric", "support")}
    assert header(answer.text) == {"All graders": "/", **expected}


def test_the_pages_without_a_name_are_those_of_the_first(pages: TestClient) -> None:
    assert here(pages.get("/").text) == ["All graders"]
    assert here(pages.get("/queries").text) == ["rubric"]
    assert header(pages.get("/queries").text)["support"] == "/grader/support/queries"
    # What is of no grader leads to their leaderboards.
    assert header(pages.get("/rejected").text)["support"] == "/grader/support"
    assert here(pages.get("/rejected").text) == []


def test_links_stay_with_the_grader(pages: TestClient) -> None:
    waiting, known = ["/grader/support"], {"/grader/support"}
    while waiting:
        page = pages.get(waiting.pop())
        assert page.status_code == 200, page.url
        main = page.text.partition("<main")[2]
        links = {unescape(link) for link in re.findall(r'href="(/[^"?#]*)', main)}
        assert all(link.startswith("/grader/support") for link in links), links
        waiting += links - known
        known |= links
    assert "/grader/support/run/rag-demo" in known
    assert any("/passage/" in link for link in known)
    assert any("/item/" in link for link in known)


def test_the_leaderboard_of_a_grader_is_its_own(demo: Path, pages: TestClient) -> None:
    with trecexam.open_track(demo) as track:
        own = track["support"].leaderboard()
    table = list(csv.DictReader(pages.get("/grader/support?format=csv").text.splitlines()))
    assert {row["run"]: float(row["SupportF1"]) for row in table} == pytest.approx(
        {row.run: row.scores["SupportF1"].mean for row in own.rows}
    )


def test_only_the_first_graders_pages_take_what_people_say(pages: TestClient) -> None:
    ours = re.search(r'href="(/query/q01/passage/[^"]*)"', pages.get("/query/q01").text)
    assert ours is not None
    assert 'action="/override"' in pages.get(unescape(ours[1])).text
    link = re.search(r'href="(/grader/support/query/[^"]*/passage/[^"]*)"', _first_query(pages))
    assert link is not None
    assert 'action="/override"' not in pages.get(unescape(link[1])).text
    form = {"csrf": csrf_of(pages)}
    assert pages.post("/grader/support/query/q01", data=form).status_code == 405


def _first_query(pages: TestClient) -> str:
    links = re.findall(r'href="(/grader/support/query/[^"/]*)"', pages.get("/grader/support/queries").text)
    return next(page for page in (pages.get(link).text for link in links) if "/passage/" in page)


def test_a_grader_that_there_is_not_is_named(pages: TestClient) -> None:
    answer = pages.get("/grader/umbrela/queries")
    assert answer.status_code == 404
    assert "the graders are rubric, support" in words(answer.text)


def test_a_grader_that_cannot_go_on_is_named_with_the_reason(demo: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(demo, tmp_path / "demo"))
    (root / "support.tsv").unlink()
    with client_of(root) as pages:
        page = pages.get("/")
        assert page.status_code == 200
        assert "support says nothing now" in words(page.text)
        assert "support.tsv" in words(page.text)
        assert header(page.text) == {"All graders": "/", "rubric": "/grader/rubric"}
        assert "support.tsv" in words(pages.get("/grader/support").text)


@pytest.mark.slow
def test_the_copy_has_all_of_it(demo: Path, tmp_path: Path) -> None:
    export(demo, tmp_path / "site")
    index = (tmp_path / "site" / "index.html").read_text()
    assert "All graders" in index
    assert header(index) == {
        "All graders": "index.html",
        "rubric": "grader/rubric.html",
        "support": "grader/support.html",
    }
    for page in (tmp_path / "site").rglob("*.html"):
        for link in re.findall(r'href="([^"#]+)', page.read_text()):
            assert (page.parent / unescape(link)).is_file(), (page, link)


@pytest.mark.slow
def test_a_blind_copy_names_no_run_of_any_grader(demo: Path, tmp_path: Path) -> None:
    export(demo, tmp_path / "site", blind=True)
    for path in (tmp_path / "site").rglob("*"):
        if path.is_file() and path.suffix in {".html", ".csv", ".json"} and "static" not in path.parts:
            assert "rag-demo" not in path.read_text(), path
            assert "rag-demo" not in str(path.relative_to(tmp_path))


def test_where_the_first_grader_cannot_go_on_the_page_is_of_the_next_and_takes_no_ratings(
    demo: Path, tmp_path: Path
) -> None:
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
        assert "support:F1" in first.text
        assert "no test bank" in words(first.text)
        assert client.get("/grader/support/queries").status_code == 200
        cell = {"query": "q01", "doc": "heat-pump-06", "item": "", "rating": "3", "who": "ann", "why": "so"}
        answer = client.post("/override", data={"csrf": csrf_of(client), **cell})
        assert answer.status_code == 404
        assert "People rate here for the grader rubric, which cannot go on" in words(answer.text)
    assert sorted(path.name for path in track.glob("overrides*")) == ratings
