from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import client_of, csrf_of
from starlette.testclient import TestClient

from trecexam.extensions.page import urls
from trecexam.extensions.page.gather import query_counts
from trecexam.extensions.page.reader import Look
from trecexam.extensions.page.view import QueryView
from trecexam.features.override.overriding import seen_token

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
def test_a_rating_shown_before_the_reload_equals_the_one_after_it(
    track: Path, item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trecexam.extensions.page.live import LiveTrack

    with client_of(track) as client:
        live = client.app.state.live  # type: ignore[attr-defined]
        before = state_of(client)
        place = before.place("q1-d00")
        assert place is not None
        # Never equal to the grader's rating, which would show nothing.
        rating = str(5 - int(before.ratings[place, 0]))
        form = {"csrf": csrf_of(client), **CELL, "item": item, "who": "Ann", "why": "w", "rating": rating}
        with monkeypatch.context() as patched:
            # The reader never gets to it.
            send = live._link.send
            patched.setattr(live._link, "send", lambda message: isinstance(message, Look) or send(message))
            assert client.post("/override", data=form).status_code == 303
            shown = state_of(client)
        assert shown.human.keys() == {("q1-d00", item)}
        assert shown is not before
        live._looking = None
        assert live.reload()
        read = state_of(client)
        assert read is not shown
        np.testing.assert_array_equal(read.ratings, shown.ratings)
        np.testing.assert_array_equal(before.codes, shown.codes)
        assert (read.labels, read.human) == (shown.labels, shown.human)
        assert isinstance(live, LiveTrack)
        assert live.view is not None
        assert live.call("rubric", query_counts)["q1"].human == 1


def test_of_two_concurrent_ratings_the_second_is_told_who_rated_first(
    client: TestClient, post: Post, track: Path
) -> None:
    page = urls.passage("q1", "q1-d00")
    tokens = set(re.findall(r'name="seen" value="([^"]*)"', client.get(page).text))
    assert tokens == {seen_token(None)}
    post("/override", **CELL, rating="5", who="Ann", why="<b>yes</b>", seen="none", back=page)
    content = (track / "overrides.tsv").read_bytes()
    answer = post("/override", **CELL, rating="1", who="Bob", why="no & no", seen="none", back=page)
    assert answer.status_code == 409
    assert (track / "overrides.tsv").read_bytes() == content
    for text in (
        "Somebody else was faster",
        "Ann",
        "&lt;b&gt;yes&lt;/b&gt;",
        "no &amp; no",
        "Say 1 all the same",
    ):
        assert text in answer.text
    # The second exit of the function.
    form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', answer.text))
    form["why"] = "no & no"
    done = client.post("/override", data=form)
    assert (done.status_code, done.headers["location"]) == (303, page)
    assert (track / "overrides.tsv").read_text().splitlines()[2].split("\t")[3:5] == ["1", "Bob"]
    assert "in place of Ann's 5" in re.sub("&#39;", "'", client.get(page).text)


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"rating": ""}, 422, "choose a rating"),
        ({"rating": "6"}, 422, "not on the grader&#39;s scale"),
        ({"rating": "9" * 5000}, 422, "choose a rating"),
        ({"rating": "²"}, 422, "choose a rating"),
        ({"why": "w\0"}, 422, "a control character, U+0000"),
        ({"who": "Ann\u202e"}, 422, "a control character, U+202E"),
        ({"why": "w" * 501}, 422, "has 501 characters"),
        ({"why": " "}, 422, "needs a reason"),
        ({"who": "\t"}, 422, "needs a name"),
        ({"query": "q9"}, 404, "No query"),
        ({"doc": "../q1-d00"}, 422, "is not in the pool"),
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
