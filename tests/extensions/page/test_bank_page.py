from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from converters.bank import read_bank
from trecexam.extensions.page.urls import Urls
from trecexam.inputs.overrides import digest_of

urls = Urls()

Post = Callable[..., Any]
PAGE = urls.bank("q1")
EDIT, RETIRE, ADD = urls.edit_item("q1"), urls.retire_item("q1"), urls.add_item("q1")


def item(track: Path, item_id: str) -> Any:
    return next(one for one in read_bank(track / "bank.questions.jsonl") if one.item_id == item_id)


def test_an_item_is_edited_and_the_page_says_what_will_be_graded(
    client: TestClient, post: Post, track: Path
) -> None:
    seen = digest_of(item(track, "q1/1"))
    answer = post(EDIT, item="q1/1", text="A new <b>question</b>?", who="Ann", why="clearer", seen=seen)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{PAGE}#item-q1~2F1"
    assert item(track, "q1/1").text == "A new <b>question</b>?"
    page = client.get(PAGE).text
    assert "Changed: A new &lt;b&gt;question&lt;/b&gt;?" in page
    assert "<b>question" not in page
    assert 'it was: <q dir="auto">question 1 of q1?</q>, <bdi>Ann</bdi>' in page
    assert client.cookies["trecexam-who"] == "Ann"


def test_an_item_is_added_retired_and_restored(client: TestClient, post: Post, track: Path) -> None:
    post(ADD, text="Quite new?", kind="question", importance="vital", who="Ann")
    added = next(one for one in read_bank(track / "bank.questions.jsonl") if one.text == "Quite new?")
    assert (added.text, added.importance) == ("Quite new?", "vital")
    seen = digest_of(added)
    post(RETIRE, item=added.item_id, retired="yes", seen=seen, who="Bob")
    assert item(track, added.item_id).retired
    page = client.get(PAGE).text
    assert "Ask about it again" in page
    assert '<h2 id="retired-head">Retired</h2>' in page
    post(RETIRE, item=added.item_id, retired="no", seen=seen, who="Bob")
    assert item(track, added.item_id) == added


def test_a_long_message_fits_into_a_cookie_that_browsers_accept(client: TestClient, post: Post) -> None:
    for text in ("\u6587" * 1000, "a" * 2000):
        answer = post(ADD, text=text, kind="question", who="Ann")
        # RFC 6265, 6.1: browsers drop longer ones silently.
        assert max(len(cookie) for cookie in answer.headers.get_list("set-cookie")) <= 4096
        assert f"Added: {text[:100]}" in client.get(PAGE).text


def test_of_two_concurrent_edits_of_an_item_the_second_is_a_conflict(
    client: TestClient, post: Post, track: Path
) -> None:
    seen = digest_of(item(track, "q1/1"))
    post(EDIT, item="q1/1", text="Ann's?", who="Ann", seen=seen)
    content = (track / "bank.questions.jsonl").read_bytes()
    answer = post(EDIT, item="q1/1", text="Bob's <i>?", who="Bob", seen=seen)
    assert answer.status_code == 409
    assert (track / "bank.questions.jsonl").read_bytes() == content
    assert "Ann&#39;s?" in answer.text
    assert "Bob&#39;s &lt;i&gt;?" in answer.text
    # The form has what Bob typed, and Ann's item as seen.
    edit = answer.text.partition(f'value="{digest_of(item(track, "q1/1"))}"')[2].partition("</form>")[0]
    assert "Bob&#39;s &lt;i&gt;?</textarea>" in edit
    again = post(EDIT, item="q1/1", text="Bob's <i>?", who="Bob", seen=digest_of(item(track, "q1/1")))
    assert again.status_code == 303
    assert item(track, "q1/1").text == "Bob's <i>?"
    # Retired in the meantime; the edit is based on the old state.
    answer = post(RETIRE, item="q1/1", retired="yes", who="Bob", seen=seen)
    assert answer.status_code == 409
    assert post(EDIT, item="q1/77", text="x", who="Bob", seen=seen).status_code == 409


@pytest.mark.parametrize(
    ("path", "form", "text"),
    [
        (EDIT, {"item": "q1/1", "text": "  "}, "has no text"),
        (EDIT, {"item": "q1/1", "text": "question 2 of q1?"}, "has this item already"),
        (EDIT, {"item": "q1/1", "text": "x", "who": ""}, "needs a name"),
        (ADD, {"text": "typed & lost?", "kind": "essay"}, "a question or a nugget"),
        (RETIRE, {"item": "q9/1", "retired": "yes"}, "no item"),
    ],
)
def test_invalid_edits_are_reported_and_the_input_is_kept(
    post: Post, track: Path, path: str, form: dict[str, str], text: str
) -> None:
    before = (track / "bank.questions.jsonl").read_bytes()
    answer = post(path, **{"who": "Ann", **form})
    assert answer.status_code == 422
    assert text in answer.text
    assert (track / "bank.questions.jsonl").read_bytes() == before
    if "typed" in form.get("text", ""):
        assert "typed &amp; lost?" in answer.text
    if form.get("item") == "q1/1":
        assert re.search(r'<details id="edit-item-q1~2F1" open>', answer.text)


def test_a_bank_broken_in_the_meantime_is_reported(client: TestClient, post: Post, track: Path) -> None:
    with (track / "bank.questions.jsonl").open("a") as file:
        file.write("{}\n")
    page = client.get(PAGE)
    assert page.status_code == 200
    assert "bank.questions.jsonl:4" in page.text
    answer = post(EDIT, item="q1/1", text="x", who="Ann")
    assert answer.status_code == 422
    assert "bank.questions.jsonl:4" in answer.text
