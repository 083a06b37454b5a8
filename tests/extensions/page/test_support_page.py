"""The page "Support": a sentence beside the passage that it cites, and a person's label of the two."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from cited import make_cited_track, response, write_responses
from scripted_server import Exchange, serving
from served import client_of, csrf_of
from starlette.testclient import TestClient

pytest.importorskip("httpx2")
pytest.importorskip("tenacity")

from cited import judging

import trecexam
from trecexam.extensions.page.marking import marked_support

DOCS = ["q1-heat", "q1-cost", "q2-sea", "lost"]
#: What the grader answers, which nobody must see before a label of one's own.
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


@pytest.fixture
def client(track: Path) -> Iterator[TestClient]:
    with client_of(track) as opened:
        yield opened


def first(client: TestClient) -> str:
    answer = client.get("/support")
    assert answer.status_code == 303
    return str(answer.headers["location"])


def fields(page: str, *, undo: bool = False) -> dict[str, str]:
    """The hidden fields of the form that labels, or of the one that takes a label back."""
    forms = [
        {
            name: unescape(value)
            for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
        }
        for form in re.findall(r'<form method="post" action="/support".*?</form>', page, re.DOTALL)
    ]
    return next(form for form in forms if ("rating" in form) == undo)


def label(client: TestClient, address: str, rating: str, who: str = "Ann", **more: str) -> Any:
    form = fields(client.get(address).text)
    return client.post("/support", data={"why": "so", **form, "who": who, "rating": rating, **more})


def link(page: str, name: str) -> str:
    found = re.search(rf'id="judge-{name}" rel="\w+" href="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])


def overrides(track: Path) -> list[dict[str, str]]:
    with (track / "overrides.support.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def sentence_of(page: str) -> str:
    match = re.search(r"<strong>(.*?)</strong>", page)
    assert match is not None
    return unescape(match[1])


def test_how_many_are_left_holds_when_a_page_is_fetched_again(client: TestClient) -> None:
    def left(address: str) -> str:
        line = re.search(r'id="left">(.*?)</span>', client.get(address).text)
        assert line is not None
        return line[1]

    address = first(client)
    number = int(left(address).split()[0])
    assert left(address) == f"{number} more to label."
    following = client.get(link(client.get(address).text, "next")).headers["location"]
    assert [left(following) for _ in range(2)] == [f"{number - 1} more to label."] * 2
    # Labelled, it is left no more, however it is come to.
    label(client, following, "1")
    assert left(following) == left(following) == f"{number - 2} more to label."


def test_nothing_tells_the_run_or_the_grader_before_ones_own_label(client: TestClient) -> None:
    address, shown = first(client), set()
    for _ in range(4):
        answer = client.get(address)
        told = answer.text + address + str(answer.headers)
        assert not re.search("sysalpha|sysbeta|full_support|partial_support|no_support", told)
        assert ANSWER not in told
        assert "What the grader said is shown when your label is in" in told
        assert re.search(r"<title>Support · cited</title>", told)
        shown.add(sentence_of(answer.text))
        address = client.get(link(answer.text, "next")).headers["location"]
    assert shown == {"Both move heat.", "Pumps cost <i>time</i>.", "The sea is salt.", "Cats purr."}
    assert address == "/support"


def test_the_sentence_stands_between_its_neighbours_beside_the_passage_with_what_matches_marked(
    client: TestClient,
) -> None:
    queue = client.app.state.live.view.support.queue  # type: ignore[attr-defined]
    named = {sentence.item.text: sentence.name for sentence in queue.sentences}
    page = client.get(f"/support/sentence/{named['Pumps cost <i>time</i>.']}").text
    assert '<p class="soft" dir="auto">Both move heat.</p>' in page
    assert "<strong>Pumps cost &lt;i&gt;time&lt;/i&gt;.</strong>" in page
    assert '<p class="soft" dir="auto">Why?</p>' in page
    assert "<mark>Pumps</mark> <mark>cost</mark> money." in page
    assert "Gone." not in named


def test_a_label_counts_goes_on_and_then_shows_what_the_grader_said(client: TestClient, track: Path) -> None:
    one = first(client)
    # What two runs share goes first.
    assert sentence_of(client.get(one).text) == "Both move heat."
    answer = label(client, one, "0")
    assert answer.status_code == 303
    two = answer.headers["location"]
    assert two not in {one, "/support"}
    page = client.get(two).text
    assert "no_support by Ann counts now." in page
    (row,) = overrides(track)
    assert (row["query_id"], row["doc_id"], row["rating"], row["who"]) == ("q1", "q1-heat", "0", "Ann")
    back = client.get(link(page, "previous")).headers["location"]
    assert back == one
    page = client.get(back).text
    assert "Ann</bdi> says no_support" in page
    assert f'<p>partial_support <q dir="auto">{ANSWER}partial_support</q></p>' in page
    live = client.app.state.live  # type: ignore[attr-defined]
    assert live.wait_for(lambda one: one.view.support_counts.human_cells == 1)
    board = client.get("/").text
    assert "4 sentences with" not in board
    assert (
        "Support: 5 sentences with a cited passage, 4 graded, 1 labelled by people, 1 without a text" in board
    )
    # Another person does not see it, and is told that it is there.
    client.cookies.clear()
    page = client.get(one).text
    assert "Somebody labelled it already" in page
    assert "no_support" not in page
    assert ANSWER not in page
    assert first(client) != one


def test_the_last_label_is_undone_and_given_again(client: TestClient, track: Path) -> None:
    one = first(client)
    two = label(client, one, "2").headers["location"]
    answer = client.post("/support", data=fields(client.get(two).text, undo=True))
    assert answer.headers["location"] == one
    page = client.get(one).text
    assert "Your label is withdrawn." in page
    assert "What the grader said is shown when" in page
    assert label(client, one, "1").status_code == 303
    assert [row["rating"] for row in overrides(track)] == ["2", "", "1"]


def test_the_label_after_which_none_is_left_is_undone_as_well(client: TestClient, track: Path) -> None:
    address = first(client)
    while address != "/support":
        last, address = address, label(client, address, "2").headers["location"]
    page = client.get("/support").text
    assert "No sentence is left to label" in page
    assert client.post("/support", data=fields(page, undo=True)).headers["location"] == last
    assert [row["rating"] for row in overrides(track)][-2:] == ["2", ""]
    assert "Your label is withdrawn." in client.get(last).text


def test_a_label_that_somebody_gave_meanwhile_is_not_overruled_by_accident_nor_told(
    client: TestClient, track: Path
) -> None:
    one = first(client)
    stale = fields(client.get(one).text)
    label(client, one, "2", who="Bob")
    client.cookies.clear()
    answer = client.post("/support", data={**stale, "why": "w", "who": "Ann", "rating": "0"})
    assert (answer.status_code, answer.headers["location"]) == (303, one)
    page = client.get(one).text
    assert "Nothing of yours is written: meanwhile Bob labelled it." in page
    assert "full_support" not in page
    assert [row["who"] for row in overrides(track)] == ["Bob"]
    assert label(client, one, "0").status_code == 303
    assert [row["who"] for row in overrides(track)] == ["Bob", "Ann"]


def test_when_all_are_labelled_or_skipped_it_says_so_and_shows_the_skipped_again(client: TestClient) -> None:
    address = first(client)
    for number in range(3):
        address = label(client, address, str(number)).headers["location"]
    skipped = address
    assert client.get(link(client.get(address).text, "next")).headers["location"] == "/support"
    page = client.get("/support").text
    assert "but for those that you skipped" in page
    assert "Show the 1 that were skipped" in page
    assert client.post("/support/again", data={"csrf": csrf_of(client)}).status_code == 303
    assert first(client) == skipped


def test_it_works_by_the_keys_1_2_3_and_without_a_script(client: TestClient) -> None:
    page = client.get(first(client)).text
    keys = re.findall(r'<button name="rating" value="(\d)"[^>]*aria-keyshortcuts="(\d)">(\w+)', page)
    assert keys == [("2", "1", "Full"), ("1", "2", "Partial"), ("0", "3", "No")]
    assert 'id="judge"' in page
    assert 'id="rate-form"' in page
    assert "/static/judge.js" in page


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"rating": "3"}, 422, "not on the grader"),
        ({"rating": ""}, 422, "choose a rating first"),
        ({"who": ""}, 422, "needs a name"),
        ({"why": ""}, 422, "needs a reason"),
        ({"sentence": "nonsense"}, 404, "No response has this sentence"),
        ({"csrf": "x"}, 403, "not of this page"),
    ],
)
def test_odd_forms_are_answered_and_write_nothing(
    client: TestClient, track: Path, change: dict[str, str], status: int, text: str
) -> None:
    form = fields(client.get(first(client)).text)
    answer = client.post("/support", data={"who": "Ann", "why": "w", **form, "rating": "1", **change})
    assert (answer.status_code, text in answer.text) == (status, True)
    assert not (track / "overrides.support.tsv").exists()


def test_a_form_of_another_site_is_refused(client: TestClient, track: Path) -> None:
    form = fields(client.get(first(client)).text)
    data = {"who": "Ann", "why": "w", **form, "rating": "1"}
    assert client.post("/support", data=data, headers={"origin": "http://evil.example"}).status_code == 403
    assert not (track / "overrides.support.tsv").exists()


def test_a_track_without_support_has_no_link_and_no_page(
    graded: Path, open_client: Callable[..., TestClient]
) -> None:
    client = open_client(graded)
    board = client.get("/").text
    assert "upport" not in board
    assert client.get("/support").status_code == 404
    assert client.get("/support/sentence/abc").status_code == 404


def test_a_label_by_hand_in_overrides_tsv_counts_at_once(client: TestClient, track: Path) -> None:
    one = first(client)
    label(client, one, "2")
    content = (track / "overrides.support.tsv").read_text()
    client.cookies.clear()
    (track / "overrides.support.tsv").unlink()
    assert first(client) == one
    (track / "overrides.support.tsv").write_text(content)
    assert first(client) != one


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
def test_what_matches_is_the_sentence_where_it_stands_else_the_words_that_both_have(
    passage: str, sentence: str, marked: list[str]
) -> None:
    pieces = marked_support(passage, sentence)
    assert [piece.text for piece in pieces if piece.is_marked] == marked
    assert "".join(piece.text for piece in pieces) == passage


def test_a_label_makes_no_other_queue(client: TestClient) -> None:
    live = client.app.state.live  # type: ignore[attr-defined]
    before, queue = live.view.version, live.view.support
    label(client, first(client), "1")
    assert live.reload()
    assert live.wait_for(lambda one: one.view.version > before)
    assert live.view.support_counts.human_cells == 1
    assert live.view.support is queue


def test_labels_of_sentences_on_which_people_differ_stand_on_the_campaign_s_page(
    client: TestClient, track: Path
) -> None:
    live = client.app.state.live  # type: ignore[attr-defined]
    sentence = live.view.support.queue.sentences[0]
    query_id, doc_id, item_id = sentence.key
    assert sentence.item.text not in client.get("/campaign/agreement").text
    with trecexam.open_track(track) as loaded:
        for who, rating in (("ada", 2), ("bob", 0)):
            loaded["support"].override(query_id, doc_id, rating, item=item_id, who=who, why="read")
    live.reload()
    page = unescape(client.get("/campaign/agreement").text)
    assert "0 of 0 wait" in page
    assert f"/support/sentence/{sentence.name}" in page
    assert sentence.item.text in page
    assert (
        "<bdi>ada</bdi>: <strong>full support</strong>; <bdi>bob</bdi>: <strong>no support</strong>" in page
    )
