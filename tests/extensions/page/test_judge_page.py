from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from served import client_of, csrf_of
from starlette.testclient import TestClient
from support import graded_track, until
from worker_thread import Thread

import trecexam
from trecexam.extensions.page.judging import (
    JudgeNext,
    Key,
    Wish,
    look,
)


@pytest.fixture
def client(track: Path) -> Iterator[TestClient]:
    (track / "qrels.txt").unlink()
    make = lambda: Thread(look, track)  # noqa: E731
    with JudgeNext(track, make=make) as judging, client_of(track, judging=judging) as opened:
        yield opened


LIST = "/judge"


def first(client: TestClient) -> str:
    """The URL of the best judgment, after all queries were searched."""
    looks = client.app.state.judging.of(Wish(grader="rubric"))  # type: ignore[attr-defined]
    until(lambda: not (queue := looks.want(1)).total and len(queue.as_of) >= max(1, queue.queries))
    return str(client.get(LIST).headers["location"])


def key_of(address: str) -> Key:
    given = parse_qs(urlsplit(address).query, keep_blank_values=True)
    return Key(*(given.get(name, [""])[0] for name in ("query", "doc", "item")))


def forms(page: str) -> list[dict[str, str]]:
    """The hidden fields of each form of a page."""
    return [
        {
            name: unescape(value)
            for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', one)
        }
        for one in re.findall(r'<form method="post".*?</form>', page, re.DOTALL)
    ]


def rate(client: TestClient, address: str, rating: str, **more: str) -> Any:
    page = client.get(address).text
    form = next(one for one in forms(page) if one.get("from") == "judge" and "rating" not in one)
    return client.post("/override", data={"who": "Ann", "why": "because", **form, "rating": rating, **more})


def undo(client: TestClient, address: str) -> Any:
    page = client.get(address).text
    form = next(one for one in forms(page) if one.get("rating") == "withdraw")
    return client.post("/override", data=form)


def test_rating_continues_with_the_next_best_and_rated_ones_leave_the_list(client: TestClient) -> None:
    judging = client.app.state.judging  # type: ignore[attr-defined]
    address, given = first(client), []
    for number in range(4):
        given.append(key_of(address))
        answer = rate(client, address, str(number))
        assert answer.status_code == 303
        address = answer.headers["location"]
    queue = judging.of(Wish(grader="rubric")).want(1)
    best = [row.key for row in queue.best]
    assert len(set(given)) == 4
    assert set(given) <= set(best)
    state = client.app.state.live.view.query(given[0].query_id)  # type: ignore[attr-defined]
    assert state.human[given[0][1:]].rating == 0
    # A new browser gets what is left.
    client.cookies.clear()
    assert key_of(first(client)) not in given
    csrf_of(client)


def test_passages_can_be_skipped_revisited_and_started_again(client: TestClient) -> None:
    one = first(client)
    page = client.get(one).text
    skip = unescape(re.search(r'id="judge-next" rel="next" href="([^"]*)"', page)[1])  # type: ignore[index]
    two = client.get(skip).headers["location"]
    assert key_of(two) != key_of(one)
    page = client.get(two).text
    back = unescape(re.search(r'id="judge-previous" rel="prev" href="([^"]*)"', page)[1])  # type: ignore[index]
    assert key_of(client.get(back).headers["location"]) == key_of(one)
    # Skipped passages are shown again only on request.
    seen, address = {key_of(one)}, two
    for _ in range(100):
        seen.add(key_of(address))
        client.get(address)
        query_id, doc_id, _ = key_of(address)
        params = {"query": query_id, "doc": doc_id}
        address = client.get("/judge/next", params=params).headers["location"]
        if "query=" not in address:
            break
        assert key_of(address) not in seen
    over = client.get(address).text
    assert "but for those that you skipped" in over
    assert f"Show the {len(seen)} that were skipped" in over
    client.post("/judge/again", data={"csrf": csrf_of(client)})
    assert key_of(first(client)) == key_of(one)


def test_the_last_rating_is_undone_and_judged_again(client: TestClient, track: Path) -> None:
    one = first(client)
    two = rate(client, one, "3").headers["location"]
    assert "Undo the 3" in client.get(two).text
    back = undo(client, two)
    assert key_of(back.headers["location"]) == key_of(one)
    assert "is withdrawn" in client.get(one).text
    assert "Undo the" not in client.get(one).text
    assert rate(client, one, "1").status_code == 303
    rows = [line.split("\t")[3:6] for line in (track / "overrides.tsv").read_text().splitlines()[1:]]
    assert rows == [["3", "Ann", "because"], ["", "Ann", "undone"], ["1", "Ann", "because"]]


def test_a_concurrent_rating_by_another_person_is_a_conflict(client: TestClient) -> None:
    one = first(client)
    stale = client.get(one).text
    rate(client, one, "3")
    form = next(form for form in forms(stale) if form.get("from") == "judge" and "rating" not in form)
    answer = client.post("/override", data={**form, "who": "Bob", "why": "b", "rating": "0"})
    assert answer.status_code == 409
    (again,) = forms(answer.text)
    onwards = client.post("/override", data=again)
    assert onwards.status_code == 303
    assert onwards.headers["location"].startswith("/judge")


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("/judge?query=q9&doc=x", 404, "not in the pool"),
        ("/judge?query=q1&doc=../x", 404, "not in the pool"),
        ("/judge?query=q1&doc=q1-d00&item=q1/77", 404, "has no item"),
        ("/judge/sideways?query=q1", 303, ""),
        ("/judge?by=nonsense", 200, "nonsense"),
        ("/judge?by=Cover(rel%3D4)@5", 200, "does not use labels"),
    ],
)
def test_unusual_urls_get_a_response(client: TestClient, address: str, status: int, text: str) -> None:
    for _ in range(100):
        answer = client.get(address)
        if "Looking for the passages" not in answer.text:
            break
    assert answer.status_code == status
    assert text in answer.text


@pytest.mark.parametrize("wish", [Wish(), Wish("nDCG@5")])
def test_a_real_search_finds_the_same_as_judge_next(tmp_path: Path, wish: Wish) -> None:
    root = graded_track(tmp_path / "track")
    (root / "qrels.txt").unlink()
    with trecexam.open_track(root) as track:
        found = track.judge_next(wish.measure or None)
    assert found.rows
    with JudgeNext(root, make=lambda: Thread(look, root)) as judging:
        wanted = judging.of(wish)
        wanted.want(1)
        until(lambda: bool(wanted.wait(10).as_of) and not wanted.want(1).total)
        queue = wanted.want(1)
    assert [one.key for one in queue.best] == [Key(one.query_id, one.doc_id, "") for one in found.rows]
    assert (queue.measure, queue.level) == (found.measure, found.level)


def test_a_separate_process_searches_too_and_ends_with_the_page(tmp_path: Path) -> None:
    root = graded_track(tmp_path / "track")
    (root / "qrels.txt").unlink()
    with JudgeNext(root) as judging:
        wanted = judging.of(Wish())
        wanted.want(1)
        assert wanted.wait(60).best
    with JudgeNext(root) as judging:
        # Killed in the middle.
        judging.of(Wish()).want(1)
        time.sleep(0.2)
