"""The scales on which people judge, the notes of a result, and the page of work that is left."""

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

urls = Urls()

CELL = {"query": "q1", "doc": "q1-d03", "item": "", "who": "Ann", "why": "read it"}
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


def test_the_passage_page_offers_the_official_scale_with_words(client: TestClient) -> None:
    assert offered(client.get(urls.passage("q1", "q1-d03")).text) == list(enumerate(TREC))


def test_so_does_the_page_to_judge_which_leaves_out_what_is_judged_officially(track: Path) -> None:
    (track / "qrels.txt").write_text("q1 0 q1-d00 3\nq2 0 q2-d00 0\n")
    with client_of(track) as client:
        client.post("/who", data={"who": "Ann", "csrf": csrf_of(client)})
        page = client.get("/assess", follow_redirects=True).text
        n_pooled = client.app.state.live.view.counts.passages  # type: ignore[attr-defined]
    buttons = re.findall(r'<button name="item-1" value="(\d)"[^>]*>([^<]+) <kbd>', page)
    assert buttons == [(str(value), text) for value, text in enumerate(TREC)]
    assert f"0 of {n_pooled - 2} passages rated" in page


def test_what_a_person_judged_stays_hers_when_the_track_is_read_again(track: Path) -> None:
    (track / "qrels.txt").write_text("q1 0 q1-d00 3\nq2 0 q2-d00 0\n")
    with client_of(track) as client:
        client.post("/who", data={"who": "Ann", "csrf": csrf_of(client)})
        address = client.get("/assess").headers["location"]
        before_cannot = client.get(address).text.partition('id="cannot"')[0]
        form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', before_cannot))
        assert client.post("/assess", data={**form, "item-1": "2"}).status_code == 303
        client.app.state.live.reload()  # type: ignore[attr-defined]
        page = client.get(address).text
    assert "1 of" in page
    assert 'class="r2 now"' in page


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


def test_without_official_judgments_ratings_have_the_words_of_the_rubric(track: Path) -> None:
    (track / "qrels.txt").unlink()
    with client_of(track) as client:
        found = offered(client.get(urls.passage("q1", "q1-d03")).text)
    assert [value for value, _ in found] == list(range(6))
    assert found[0][1] == "not relevant or complete at all"
    assert found[5][1] == "highly relevant and complete"


@pytest.mark.parametrize("label", [0, 3])
def test_a_judgment_on_the_page_is_the_label_that_fill_writes(track: Path, label: int) -> None:
    """Her 3 of TREC's 0..3 became 1, by the rule for the model's labels."""
    drop_hole(track)
    page = urls.passage("q1", "q1-d03")
    with client_of(track) as client:
        form = {"csrf": csrf_of(client), **CELL, "rating": str(label), "seen": "none", "back": page}
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
    answer = post("/override", **CELL, rating="4", seen="none")
    assert answer.status_code == 422
    assert "0..3 (0 irrelevant, 1 related" in unescape(answer.text)
    assert not any((track / name).exists() for name in ("overrides.tsv", "judgments.tsv"))


def test_the_page_folds_all_notes_after_the_third(track: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = tuple(f"line {n}" for n in range(9))
    monkeypatch.setattr("trecexam.features.leaderboard.board.encoder_cautions", lambda track: lines)
    assert run(["watch", str(track), "--once"]) == 0
    with client_of(track) as client:
        shown, _, folded = client.get("/").text.partition('<details id="more-notes"><summary>')
    assert shown.count('<p class="note">') == 4  # one of them is in the head, hidden
    assert re.match(r"\d+ more</summary>", folded)
    assert "line 8" in folded


def test_the_page_counts_every_cell_by_its_status(client: TestClient) -> None:
    counts = {name: int(count) for name, count in rows_of(client.get("/result/grading").text)}
    assert counts["graded"] == sum(counts.values()) > 0
