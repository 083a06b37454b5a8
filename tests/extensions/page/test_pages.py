"""What the pages show of a small track whose numbers can be recomputed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest
from headings import score_columns
from served import client_of, rows_of
from starlette.testclient import TestClient
from support import hashed_rating, tsv_rows, write_run

import trecexam
from trecexam.extensions.page.pages.results import RESULTS
from trecexam.extensions.page.urls import Urls

urls = Urls()


@pytest.fixture(scope="module")
def reading(graded: Path) -> Iterator[TestClient]:
    """A client of a read-only page."""
    with client_of(graded) as client:
        yield client


@pytest.fixture(scope="module")
def checked() -> set[str]:
    """The links that were followed."""
    return set()


PAGES = [
    "/",
    "/?sort=-m1",
    "/?sort=run&q=run1",
    "/?baseline=run1&sort=group",
    urls.run("run1"),
    urls.run("run1", sort="-retrieved"),
    urls.query("q1"),
    urls.query("q1", run="run1"),
    urls.query("q1", show="items"),
    urls.query("q1", show="runs"),
    urls.query("q1", status="missing"),
    urls.passage("q1", "q1-d00"),
    urls.passage("q1", "q1-d00", item="q1/0"),
    "/section/holes",
    *(urls.result(name) for name in RESULTS),
]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_can_be_read_aloud_keeps_its_policy_and_has_links_that_work(
    reading: TestClient, checked: set[str], path: str
) -> None:
    page = reading.get(path)
    assert page.status_code == 200
    html = page.text
    assert html.count("<h1") == 1
    assert '<html lang="en">' in html
    assert '<a class="skip" href="#main">' in html
    assert re.search(r"<title>[^<]+ · track</title>", html)
    for head in re.findall(r"<th[\s>][^>]*>", html):
        assert 'scope="' in head
    labelled = set(re.findall(r'<label[^>]* for="([^"]+)"', html))
    around = re.sub(r"<label[^>]*>(?:(?!</label>).)*</label>", "", html, flags=re.DOTALL)
    for field in re.findall(r"<(?:input|select|textarea|progress)[^>]*>", around):
        assert 'type="hidden"' in field or re.search(r'id="([^"]+)"', field)[1] in labelled  # type: ignore[index]
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    for known in re.findall(r'aria-labelledby="([^"]+)"', html):
        assert known in ids
    assert not re.search(r"\son\w+=|\sstyle=|javascript:|<style|<script(?! src=)", html)
    links = {link.replace("&amp;", "&").partition("#")[0] for link in re.findall(r'href="([^"]+)"', html)}
    unseen = [link for link in links - checked if link]
    assert not [link for link in unseen if reading.get(link, follow_redirects=True).status_code != 200]
    checked |= links


def test_the_leaderboard_has_the_means_of_the_tsv(reading: TestClient, graded: Path) -> None:
    rows = tsv_rows(graded / "out" / "leaderboard.tsv")
    html = reading.get("/").text
    places = [html.index(f">{row['run']}</bdi>") for row in rows]
    assert places == sorted(places)
    for row in rows:
        assert f"{float(row[score_columns(row)[0]]):.3f}" in html


def test_the_ranking_of_a_run_is_in_its_order_and_can_be_sorted(reading: TestClient, graded: Path) -> None:
    lines = [line.split() for line in (graded / "runs" / "run1.run").read_text().splitlines()]
    ranked = [row[2] for row in sorted(lines, key=lambda row: -float(row[4])) if row[0] == "q1"][:8]
    rows = rows_of(reading.get(urls.query("q1", run="run1")).text)
    assert [(int(row[0]), row[1]) for row in rows] == list(enumerate(ranked, 1))
    by_label = rows_of(reading.get(urls.query("q1", run="run1", sort="-label")).text)
    labels = [row[2] for row in by_label]
    assert labels == sorted(labels, reverse=True)
    best_first = [row[1] for row in rows_of(reading.get(urls.query("q1")).text)]
    assert best_first == sorted(best_first, reverse=True)
    assert [row[1] for row in by_label] != ranked
    assert [ranked[int(row[0]) - 1] for row in by_label] == [row[1] for row in by_label]


def test_a_passage_shows_the_rating_and_the_answer_of_every_item(reading: TestClient) -> None:
    html = reading.get(urls.passage("q1", "q1-d02")).text
    cells = html.split('<li id="item-')[1:]
    assert len(cells) == 4
    for number, cell in enumerate(cells):
        rating = hashed_rating("passage 2 about q1", f"question {number} of q1?")
        assert f"question {number} of q1?" in cell
        assert f'class="rating r{rating}">{rating}<' in cell
        assert f"says {rating}" in cell


def test_disagreements_are_between_labels_and_judgments(reading: TestClient, graded: Path) -> None:
    labels, judged = (
        {tuple(line.split()[::2]): int(line.split()[3]) for line in path.read_text().splitlines()}
        for path in (graded / "out" / "rubric.qrels", graded / "qrels.txt")
    )
    both = labels.keys() & judged.keys()
    apart = {key for key in both if (judged[key] >= 1) != (labels[key] >= 4)}
    page = reading.get(urls.result("disagreements", size=100)).text
    assert {tuple(row[:2]) for row in rows_of(page)} == apart
    assert {(row[0], row[1], int(row[2]), int(row[3])) for row in rows_of(page)} == {
        (*key, labels[key], judged[key]) for key in apart
    }
    assert all(f"passage {int(row[1][-2:])} about {row[0]}" in row[4] for row in rows_of(page))
    assert apart
    for key in apart:
        assert f'href="{urls.passage(*key)}"' in page
    assert "Cohen's kappa" in unescape(page)


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "</mark></title></textarea><h1>",
    "javascript:alert(1)",
    "&lt;b&gt;&#x3c;",
    "a\x00b\x1b[31m\u202e\ud7ff",
]


def test_foreign_text_is_never_markup(tmp_path: Path, open_client: Callable[..., TestClient]) -> None:
    """In every field that comes from a file: ids, texts, answers, run and file names, people's names."""
    root = tmp_path / "tr<b>ack"
    root.mkdir()
    word = "".join(HOSTILE[n] for n in (0, 1, 2, 4))
    glued = word.replace(" ", "/")
    (root / "queries.tsv").write_text(f"{glued}\t{word}\n")
    rows = [{"docid": f"{glued}{n}", "text": f"{word} number {n}"} for n in range(4)]
    (root / "passages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = [{"question_id": f"{glued}/{n}", "question_text": f"{word}?"} for n in range(2)]
    (root / "bank.x.jsonl").write_text(json.dumps({"query_id": glued, "questions": items}) + "\n")
    (root / "qrels.txt").write_text(
        "".join(f"{glued} 0 {row['docid']} {n % 2}\n" for n, row in enumerate(rows))
    )
    write_run(root / "runs" / "a.run", {glued: [row["docid"] for row in rows]}, tag=glued)
    (root / "runs" / "bad<img src=x>.run").write_text(f"{glued} {glued} <script>\n")
    grades = [
        {"query_id": glued, "doc_id": row["docid"], "item_id": item["question_id"], "rating": 5 - n,
         "answer": f"{word} {n}", "text": row["text"]}
        for n, row in enumerate(rows) for item in items
    ]  # fmt: skip
    (root / "grades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in grades))
    (root / "trecexam.toml").write_text('[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    with trecexam.open_track(root) as track:
        track.update()
        track.override(glued, rows[0]["docid"], 1, item=items[0]["question_id"], who=word, why=word)
        track.update()
    client = open_client(root)
    doc, item = rows[0]["docid"], items[0]["question_id"]
    seen = ""
    addresses = [
        *("/", "/section/holes", "/?q=" + word, f"/?sort={word}&page={word}"),
        *(urls.result(name) for name in RESULTS),
        *(urls.run(glued), urls.query(glued, run=glued), urls.run(word), urls.query(word)),
        *(urls.query(glued, show=show) for show in ("passages", "items", "runs")),
        *(urls.passage(glued, doc), urls.passage(glued, doc, item=item)),
    ]
    for path in addresses:
        html = client.get(path).text
        assert not re.search(r"<(script>|img|svg/|h1><h1|b>)", html), path
        assert not re.search(r'href="javascript:', html)
        seen += html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in seen
    assert "bad&lt;img" in seen


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_typed_text_is_returned_as_text(reading: TestClient, text: str) -> None:
    html = reading.get("/", params={"q": text}).text
    assert not re.search(r"<(script>|img|svg/|/mark)", html)
    assert "49" not in re.findall(r'<input id="filter"[^>]*value="([^"]*)"', html)[0]


class TestThereIsNothingYet:
    """The page of a track that lacks something, and the advice."""

    def test_without_a_bank_whole_passages_are_judged_until_there_is_one(
        self, track: Path, open_client: Callable[..., TestClient]
    ) -> None:
        bank = (track / "bank.questions.jsonl").read_bytes()
        (track / "bank.questions.jsonl").unlink()
        (track / "qrels.txt").unlink()
        client = open_client(track)
        page = client.get("/")
        assert "no test bank" in page.text
        assert "0.000" not in page.text
        for path in (urls.query("q1"), urls.passage("q1", "q1-d00"), *map(urls.result, RESULTS)):
            assert client.get(path).status_code == 200, path
        client.cookies["trecexam-who"] = "ann"
        assert "How well does it answer as a whole?" not in client.get("/assess", follow_redirects=True).text
        assert "highly relevant and complete <kbd>5" in client.get("/assess", follow_redirects=True).text
        (track / "bank.questions.jsonl").write_bytes(bank)
        client.app.state.live.reload()  # type: ignore[attr-defined]
        assert "run0" in client.get("/").text


def test_the_leaderboard_compares_with_a_baseline(reading: TestClient, graded: Path) -> None:
    with trecexam.open_track(graded) as track:
        compared = track.compare(baseline="run1")
    html = reading.get("/?baseline=run1").text
    assert '<option value="run1" selected>' in html
    shown = {row[1]: row for row in rows_of(html)}
    for name in ("run0", "run2"):
        values = compared.measures[0].of_baseline()[name]
        assert f"{values['difference']:.3f}" in " ".join(shown[name])
    assert "two-sided paired t test over queries, Holm over all comparisons with the baseline" in html
    nobody = reading.get("/?baseline=nobody")
    assert nobody.status_code == 200
    assert "comparisons with the baseline" not in nobody.text


def test_names_that_are_not_valid_text_are_still_shown(
    track: Path, open_client: Callable[..., TestClient]
) -> None:
    (track / "runs" / "x").mkdir()
    for number in range(2):
        # Two with the same tag are named by their files.
        path = Path(os.fsdecode(os.fsencode(track / "runs" / "x") + b"/\xff\xfe%d.run" % number))
        write_run(path, {"q1": ["q1-d00"]}, tag="same")
    client = open_client(track)
    html = client.get("/").text
    links = {link for link in re.findall(r'href="(/run/[^"]+)"', html) if "~FF~FE" in link}
    assert len(links) == 2
    for link in links:
        assert client.get(link).status_code == 200
