from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from trecexam.extensions.page.urls import Urls
from trecexam.extensions.page.view import QueryView
from trecexam.features.override.overriding import seen_token

urls = Urls()

Post = Callable[..., Any]
CELL = {"query": "q1", "doc": "q1-d00", "item": "q1/0"}


def state_of(client: TestClient, query_id: str = "q1") -> QueryView:
    state = client.app.state.live.view.query(query_id)  # type: ignore[attr-defined]
    assert isinstance(state, QueryView)
    return state


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


@pytest.mark.parametrize("item", ["q1/0", ""])
def test_after_a_rating_the_query_is_shown_with_it(client: TestClient, post: Post, item: str) -> None:
    before = state_of(client)
    # Never equal to the grader's rating, which would show nothing.
    rating = str(5 - int(before.ratings[0, 0])) if item else "2"
    post("/override", **{**CELL, "item": item}, who="Ann", why="w", rating=rating)
    after = state_of(client)
    assert after.human.keys() == {("q1-d00", item)}
    assert str(after.human["q1-d00", item].rating) == rating
    assert not item or str(after.ratings[0, 0]) == rating
    np.testing.assert_array_equal(before.codes, after.codes)


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
