from __future__ import annotations

import csv
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from served import client_of, csrf_of, rows_of
from starlette.testclient import TestClient

from trecexam.cli.main import run
from trecexam.extensions.page.urls import Urls
from trecexam.features.override.overriding import seen_token

urls = Urls()

Post = Callable[..., Any]
CELL = {"query": "q1", "doc": "q1-d00", "item": "q1/0"}


def test_a_rating_is_written_shown_at_once_and_its_author_remembered(
    client: TestClient, post: Post, track: Path
) -> None:
    page = urls.passage("q1", "q1-d00")
    assert "Your name" in client.get(page).text
    answer = post("/override", **CELL, rating="5", who="Ann Ö", why="it says so", seen="none", back=page)
    assert (answer.status_code, answer.headers["location"]) == (303, page)
    row = (track / "overrides.tsv").read_text().splitlines()[1].split("\t")
    assert row[:6] == ["q1", "q1-d00", "q1/0", "5", "Ann Ö", "it says so"]
    assert len(row[7]) == len(row[8]) == 64
    again = client.get(page).text
    assert "q1-d00 on q1/0: 5 by Ann Ö counts now." in again
    assert "Change Ann Ö's rating" in again
    assert "Your name" not in again


def test_of_two_concurrent_ratings_the_second_is_told_who_rated_first(
    client: TestClient, post: Post, track: Path
) -> None:
    page = urls.passage("q1", "q1-d00")
    tokens = set(re.findall(r'name="seen" value="([^"]*)"', client.get(page).text))
    assert tokens == {seen_token(None)}
    post("/override", **CELL, rating="5", who="Ann", why="<b>yes</b>", seen="none", back=page)
    content = (track / "overrides.tsv").read_bytes()
    answer = post("/override", **CELL, rating="1", who="Bob", why="no & no", seen="none", back=page)
    assert (answer.status_code, answer.headers["location"]) == (303, page)
    assert (track / "overrides.tsv").read_bytes() == content
    shown = client.get(page).text
    assert "Nothing was saved: meanwhile Ann rated it 5: &lt;b&gt;yes&lt;/b&gt;" in shown
    seen = next(iter(set(re.findall(r'name="seen" value="([^"]*)"', shown)) - tokens))
    assert (
        post("/override", **CELL, rating="1", who="Bob", why="no & no", seen=seen, back=page).status_code
        == 303
    )
    assert (track / "overrides.tsv").read_text().splitlines()[2].split("\t")[3:5] == ["1", "Bob"]
    assert "in place of Ann's" in re.sub("&#39;", "'", client.get(page).text)


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"rating": ""}, 422, "choose a rating"),
        ({"rating": "6"}, 422, "not on the grader&#39;s scale"),
        ({"why": "w\0"}, 422, "a control character, U+0000"),
        ({"why": " "}, 422, "needs a reason"),
        ({"query": "q9"}, 404, "No query"),
        ({"item": "q1/9"}, 422, "has no item"),
    ],
)
def test_invalid_ratings_are_reported_and_nothing_is_written(
    post: Post, track: Path, change: dict[str, str], status: int, text: str
) -> None:
    form = {**CELL, "rating": "3", "who": "Ann", "why": "w", "seen": "none", **change}
    answer = post("/override", **form)
    assert answer.status_code == status
    assert text in answer.text
    assert not (track / "overrides.tsv").exists()


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example/", "/\\evil.example", "/a\r\nb", ""]
)
def test_no_redirect_leads_to_another_site(post: Post, client: TestClient, back: str) -> None:
    answer = post("/override", **CELL, rating="3", who="Ann", why="w", back=back)
    assert answer.headers["location"] == "/"
    assert post("/who", who="Ann", back=back).headers["location"] == "/"
    assert "evil" not in client.get("/who", params={"back": back}).text


def test_a_track_with_unwritable_ratings_says_so(post: Post, track: Path) -> None:
    (track / "overrides.tsv").write_text("no header\n")
    answer = post("/override", **CELL, rating="3", who="Ann", why="w")
    assert answer.status_code == 422
    assert "overrides.tsv:1" in answer.text


# The scales on which people judge, the notes of a result, and the page of work that is left.


WHOLE = {"query": "q1", "doc": "q1-d03", "item": "", "who": "Ann", "why": "read it"}
TREC = ["irrelevant", "related", "highly relevant", "perfectly relevant"]


def offered(page: str) -> list[tuple[int, str]]:
    """The ratings of the passage as a whole on its page, and their words."""
    form = page[page.index('id="rate-whole"') :]
    form = form[: form.index("</form>")]
    found = re.findall(r'name="rating" value="(\d+)" required> ([^<]+)</label>', form)
    return [(int(value), unescape(text).strip()) for value, text in found]


def drop_hole(track: Path) -> None:
    lines = (track / "qrels.txt").read_text().splitlines(keepends=True)
    (track / "qrels.txt").write_text("".join(line for line in lines if " q1-d03 " not in line))


@pytest.mark.parametrize(
    ("best", "words"),
    [(1, ["not relevant", "relevant"]), (2, ["not relevant", "relevant", "highly relevant"])],
)
def test_the_scale_is_that_of_the_official_judgments(track: Path, best: int, words: list[str]) -> None:
    lines = [line.split() for line in (track / "qrels.txt").read_text().splitlines()]
    capped = (f"{q} 0 {doc} {min(int(label), best)}\n" for q, _, doc, label in lines)
    (track / "qrels.txt").write_text("".join(capped))
    with client_of(track) as client:
        assert offered(client.get(urls.passage("q1", "q1-d03")).text) == list(enumerate(words))


@pytest.mark.parametrize("label", [0, 3])
def test_a_judgment_on_the_page_is_the_label_that_fill_writes(track: Path, label: int) -> None:
    """Her 3 of TREC's 0..3 became 1, by the rule for the model's labels."""
    drop_hole(track)
    page = urls.passage("q1", "q1-d03")
    with client_of(track) as client:
        form = {"csrf": csrf_of(client), **WHOLE, "rating": str(label), "seen": "none", "back": page}
        assert client.post("/override", data=form).status_code == 303
        told = client.get(page).text
        assert f"q1-d03: {TREC[label]} by Ann counts now." in told
        assert "the grader's counts again" not in told[told.index('id="rate-whole"') :].split("</details>")[0]
    merged = track.parent / "merged.qrels"
    assert run(["fill", str(track), "-o", str(merged)]) == 0
    assert f"q1 0 q1-d03 {label}\n" in merged.read_text()
    with merged.with_name("merged.qrels.sources.tsv").open() as file:
        (row,) = (row for row in csv.DictReader(file, delimiter="\t") if row["doc_id"] == "q1-d03")
    assert (row["source"], row["who"], row["why"]) == ("human", "Ann", "read it")


def test_a_rating_beyond_the_scale_is_refused_and_nothing_written(
    post: Callable[..., Any], track: Path
) -> None:
    answer = post("/override", **WHOLE, rating="4", seen="none")
    assert answer.status_code == 422
    assert "0..3 (0 irrelevant, 1 related" in unescape(answer.text)
    assert not any((track / name).exists() for name in ("overrides.tsv", "judgments.tsv"))


def test_the_page_counts_every_cell_by_its_status(client: TestClient) -> None:
    counts = {name: int(count) for name, count in rows_of(client.get("/result/grading").text)}
    assert counts["graded"] == sum(counts.values()) > 0
