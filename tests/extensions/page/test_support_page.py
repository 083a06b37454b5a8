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

pytest.importorskip("httpx2")

from cited import judging

import trecexam
from trecexam.cli.main import run

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
JUDGE = "/grader/support/assess"


@pytest.fixture
def client(track: Path) -> Iterator[TestClient]:
    with client_of(track) as opened:
        opened.post("/who", data={"who": "Ann", "csrf": csrf_of(opened)})
        yield opened


def first(client: TestClient) -> str:
    """The address of the first passage to judge."""
    answer = client.get(JUDGE)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def fields(page: str, form: str = "rate-form") -> dict[str, str]:
    """The hidden fields of the form that contains this text."""
    forms = re.findall(r'<form method="post".*?</form>', page, re.DOTALL)
    chosen = next(text for text in forms if form in text)
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', chosen)
    return {name: unescape(value) for name, value in hidden}


def label(client: TestClient, address: str, *ratings: str, form: str = "rate-form", act: str = "") -> Any:
    """Labels the sentences of a passage, or sends another form of its page."""
    given = {f"item-{number}": rating for number, rating in enumerate(ratings, 1)}
    return client.post(JUDGE, data={**fields(client.get(address).text, form), **given, "act": act})


def overrides(track: Path) -> list[dict[str, str]]:
    with (track / "overrides.support.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def sentences_of(page: str) -> list[str]:
    return [unescape(text) for text in re.findall(r'<strong dir="auto">(.*?)</strong>', page)]


def test_sentences_are_judged_in_context_without_run_and_grader(client: TestClient, track: Path) -> None:
    address, shown = first(client), list[str]()
    for _ in range(3):
        answer = client.get(address)
        told = answer.text + address + str(answer.headers)
        assert not re.search("sysalpha|sysbeta", told)
        assert ANSWER not in told
        asked = sentences_of(answer.text)
        shown += asked
        if "Pumps cost <i>time</i>." in asked:
            assert '<span class="soft" dir="auto">Both move heat.</span>' in answer.text
            assert '<span class="soft" dir="auto">Why?</span>' in answer.text
        address = label(client, address, *["0"] * len(asked)).headers["location"]
    assert "Everything is judged" in client.get(address).text
    assert sorted(shown) == ["Both move heat.", "Cats purr.", "Pumps cost <i>time</i>.", "The sea is salt."]
    assert {row["rating"] for row in overrides(track)} == {"0"}
    assert {row["who"] for row in overrides(track)} == {"Ann"}
    live = client.app.state.live  # type: ignore[attr-defined]
    assert live.wait_for(lambda one: one.view.others["support"].counts.human_cells == 4)
    board = client.get("/").text
    assert re.search(r"4 of 4 cells graded by openai tiny, 4 rated by people, 1 without a text", board)
    assert f'href="{JUDGE}"' in board


def test_judge_next_refers_to_the_page(track: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["judge-next", str(track), "--grader", "support"]) == 2
    assert "label them with `trecexam serve" in capsys.readouterr().err
