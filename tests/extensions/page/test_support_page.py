"""Labelling citations: a sentence next to the passage that it cites, and a label for both."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from cited import make_cited_track, response, write_responses
from scripted_server import Exchange, serving
from served import client_of, csrf_of
from starlette.testclient import TestClient
from support import until
from worker_thread import Thread

pytest.importorskip("httpx2")

from cited import judging

import trecexam
from trecexam.extensions.page.judging import JudgeNext, Wish, look
from trecexam.extensions.page.marking import marked_support

DOCS = ["q1-heat", "q1-cost", "q2-sea", "lost"]
#: The grader's answer, which must be hidden before the first label of the person.
ANSWER = "I am sure: "


def judging_aloud(exchange: Exchange) -> None:
    judging(Aloud(exchange))  # type: ignore[arg-type]


class Aloud:
    """An exchange whose answer begins with `ANSWER`."""

    def __init__(self, exchange: Exchange) -> None:
        self.prompt, self._exchange = exchange.prompt, exchange

    def say(self, text: str) -> None:
        self._exchange.say(ANSWER + text)


@pytest.fixture(scope="module")
def cited_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with serving(judging_aloud) as server:
        root = make_cited_track(tmp_path_factory.mktemp("cited") / "track", server.url, rubric=True)
        first = (("Both move heat.", [0]), ("Pumps cost <i>time</i>.", [1]), ("Why?", []))
        for name, *of_queries in (
            ("sysalpha", first, (("The sea is salt.", [2]), ("Gone.", [3]))),
            ("sysbeta", (("Both move heat.", [0]), ("Cats purr.", [1])), ()),
        ):
            rows = [
                response(name, f"q{number}", *sentences, references=DOCS)
                for number, sentences in enumerate(of_queries, 1)
                if sentences
            ]
            write_responses(root / "runs" / f"{name}.jsonl", *rows)
        for name in ("good", "poor"):
            (root / "runs" / f"{name}.jsonl").unlink()
        with trecexam.open_track(root) as track:
            track.update()
            track["support"].update()
        return root


@pytest.fixture
def track(cited_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(cited_once, tmp_path / "cited"))


#: Where people judge for the grader.
JUDGE = "/grader/support/judge"


@pytest.fixture
def client(track: Path) -> Iterator[TestClient]:
    make = lambda: Thread(look, track)  # noqa: E731
    with JudgeNext(track, make=make, rest=0) as judging, client_of(track, judging=judging) as opened:
        yield opened


def wait_until_listed(client: TestClient) -> None:
    """Waits until the track is read and its list is made."""
    state = client.app.state  # type: ignore[attr-defined]
    state.live.reload()
    wanted = state.judging.of(Wish(grader="support"))

    def is_listed() -> bool:
        version = state.live.view.version
        queue = wanted.want(version)
        return bool(queue.level and not queue.total and not queue.stale(version))

    until(is_listed)


def first(client: TestClient) -> str:
    wait_until_listed(client)
    answer = client.get(JUDGE)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def fields(page: str, *, undo: bool = False) -> dict[str, str]:
    """The hidden fields of the labelling form, or of the undo form."""
    forms = [
        {
            name: unescape(value)
            for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
        }
        for form in re.findall(
            r'<form method="post" action="/grader/support/override".*?</form>', page, re.DOTALL
        )
    ]
    return next(form for form in forms if ("rating" in form) == undo)


def send(client: TestClient, **form: str) -> Any:
    return client.post("/grader/support/override", data=form)


def label(client: TestClient, address: str, rating: str, who: str = "Ann", **more: str) -> Any:
    form = fields(client.get(address).text)
    return send(client, **{"why": "so", **form, "who": who, "rating": rating, **more})


def link(page: str, name: str) -> str:
    found = re.search(rf'id="judge-{name}" rel="\w+" href="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])


def overrides(track: Path) -> list[dict[str, str]]:
    with (track / "overrides.support.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def sentence_of(page: str) -> str:
    match = re.search(r'<strong dir="auto">(.*?)</strong>', page)
    assert match is not None
    return unescape(match[1])


def test_neither_run_nor_grader_is_visible_before_the_first_label(client: TestClient) -> None:
    address, shown = first(client), set()
    for _ in range(4):
        answer = client.get(address)
        told = answer.text + address + str(answer.headers)
        assert not re.search("sysalpha|sysbeta", told)
        # The three labels are only on the buttons and in the help.
        assert [told.count(f"{word} support") for word in ("full", "partial", "no")] == [2, 2, 2]
        assert 'class="rating' not in told
        assert ANSWER not in told
        assert "The grader's label is shown after yours" in told
        shown.add(sentence_of(answer.text))
        address = client.get(link(answer.text, "next")).headers["location"]
    assert shown == {"Both move heat.", "Pumps cost <i>time</i>.", "The sea is salt.", "Cats purr."}
    assert address == JUDGE


def test_a_label_is_saved_and_then_the_label_of_the_grader_is_shown(client: TestClient, track: Path) -> None:
    one = first(client)
    # Citations shared by two runs come first.
    assert sentence_of(client.get(one).text) == "Both move heat."
    answer = label(client, one, "0")
    assert answer.status_code == 303
    two = answer.headers["location"]
    assert two not in {one, JUDGE}
    page = client.get(two).text
    assert "q1-heat: no support by Ann counts now." in page
    (row,) = overrides(track)
    assert (row["query_id"], row["doc_id"], row["rating"], row["who"]) == ("q1", "q1-heat", "0", "Ann")
    back = client.get(link(page, "previous")).headers["location"]
    assert back == one
    page = client.get(back).text
    assert 'Ann</bdi> says <span class="rating r0">no support</span>' in page
    assert f'<span class="rating r1">partial support</span> <q dir="auto">{ANSWER}partial_support</q>' in page
    live = client.app.state.live  # type: ignore[attr-defined]
    assert live.wait_for(lambda one: one.view.others["support"].counts.human_cells == 1)
    board = client.get("/").text
    assert re.search(r"4 of 4 cells graded by openai tiny, 1 rated by people, 1 without a text", board)
    assert f'href="{JUDGE}"' in board
    # Another person does not see the label, but is told that it exists.
    client.cookies.clear()
    page = client.get(one).text
    assert "Somebody labelled it already" in page
    assert "says" not in page.partition('id="said-head"')[2].partition("<form")[0]
    assert ANSWER not in page
    assert first(client) != one


def test_a_concurrent_label_is_not_overwritten_by_accident_and_not_revealed(
    client: TestClient, track: Path
) -> None:
    one = first(client)
    stale = fields(client.get(one).text)
    label(client, one, "2", who="Bob")
    client.cookies.clear()
    answer = send(client, **{**stale, "why": "w", "who": "Ann", "rating": "0"})
    assert (answer.status_code, answer.headers["location"]) == (303, one)
    page = client.get(one).text
    assert "Your label was not saved: meanwhile Bob labelled it." in page
    assert page.count("full support") == 2
    assert [row["who"] for row in overrides(track)] == ["Bob"]
    assert label(client, one, "0").status_code == 303
    assert [row["who"] for row in overrides(track)] == ["Bob", "Ann"]


def test_when_all_are_labelled_or_skipped_the_page_says_so_and_offers_the_skipped(client: TestClient) -> None:
    address = first(client)
    for number in range(3):
        address = label(client, address, str(number)).headers["location"]
    skipped = address
    assert client.get(link(client.get(address).text, "next")).headers["location"] == JUDGE
    wait_until_listed(client)
    page = client.get(JUDGE).text
    assert "but for those that you skipped" in page
    assert "Show the 1 that were skipped" in page
    assert client.post(f"{JUDGE}/again", data={"csrf": csrf_of(client)}).status_code == 303
    assert first(client) == skipped


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"rating": "3"}, 422, "not on the grader"),
        ({"rating": ""}, 422, "choose a rating first"),
        ({"who": ""}, 422, "needs a name"),
        ({"why": ""}, 422, "needs a reason"),
        ({"item": "statement:nonsense"}, 422, "is not graded with"),
        ({"doc": "q1-cost"}, 422, "is not graded with"),
        ({"item": ""}, 422, "no passage is rated as a whole"),
        ({"query": "q9"}, 404, "No query"),
        ({"csrf": "x"}, 403, "to another page"),
    ],
)
def test_malformed_forms_get_a_response_and_write_nothing(
    client: TestClient, track: Path, change: dict[str, str], status: int, text: str
) -> None:
    form = fields(client.get(first(client)).text)
    answer = send(client, **{"who": "Ann", "why": "w", **form, "rating": "1", **change})
    assert (answer.status_code, text in answer.text) == (status, True)
    assert not (track / "overrides.support.tsv").exists()


@pytest.mark.parametrize(
    ("passage", "sentence", "marked"),
    [
        ("He sold 42 cars. It rained.", "42 cars were sold, not 4.", ["sold", "42", "cars"]),
        ("A pump moves heat. It rained.", "A pump moves heat.", ["A pump moves heat"]),
        ("Pumps cost money.", "Pumps cost time.", ["Pumps", "cost"]),
        ("No word of it.", "Elephants sleep.", []),
        ("", "Elephants sleep.", []),
    ],
)
def test_the_sentence_or_else_the_shared_words_are_highlighted(
    passage: str, sentence: str, marked: list[str]
) -> None:
    pieces = marked_support(passage, sentence)
    assert [piece.text for piece in pieces if piece.is_marked] == marked
    assert "".join(piece.text for piece in pieces) == passage
