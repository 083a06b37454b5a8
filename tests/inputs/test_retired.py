"""A retired item is removed from all counts and outputs, and keeps its grades."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import HashGrader, contents, hashed_rating, printed, tsv_rows

import trecexam
from trecexam.errors import TrecexamError


def edit(root: Path, change: Callable[[dict[str, Any]], None], query_id: str = "q1") -> None:
    """Changes the items of one query in the track's bank."""
    bank = root / "bank.questions.jsonl"
    rows = [json.loads(line) for line in bank.read_text().splitlines()]
    for row in rows:
        if row["query_id"] == query_id:
            for item in row["questions"]:
                change(item)
    bank.write_text("".join(json.dumps(row) + "\n" for row in rows))


def retire(root: Path, *item_ids: str, query_id: str = "q1", retired: bool = True) -> None:
    def change(item: dict[str, Any]) -> None:
        if not item_ids or item["question_id"] in item_ids:
            item["retired"] = retired

    edit(root, change, query_id)


def updated(root: Path) -> tuple[HashGrader, Any]:
    """The grader of an update, which records its cells, and the outcome of the update."""
    grader = HashGrader()
    with trecexam.open_track(root, grader=grader) as track:
        return grader, track.update()


def cover(root: Path, run_name: str, query_id: str, items: list[str], depth: int = 8) -> float:
    """Cover(rel=4)@depth recomputed from the hash grader's function."""
    lines = (root / "runs" / f"{run_name}.run").read_text().splitlines()
    docs = [line.split()[2] for line in lines if line.split()[0] == query_id][:depth]
    texts = {
        row["docid"]: row["text"]
        for row in map(json.loads, (root / "passages.jsonl").read_text().splitlines())
    }
    reached = [any(hashed_rating(texts[doc], item) >= 4 for doc in docs) for item in items]
    return sum(reached) / len(items)


def test_retiring_and_restoring_runs_no_grader_and_restores_identical_outputs(small_track: Path) -> None:
    updated(small_track)
    before = contents(small_track / "out")
    bank = (small_track / "bank.questions.jsonl").read_bytes()
    retire(small_track, "q1/1", "q1/2")
    grader, done = updated(small_track)
    assert grader.asked == []
    assert done.changed
    assert contents(small_track / "out")["rubric.qrels"] != before["rubric.qrels"]
    (small_track / "bank.questions.jsonl").write_bytes(bank)
    grader, done = updated(small_track)
    assert grader.asked == []
    assert done.changed
    assert contents(small_track / "out") == before


def test_an_item_edited_while_retired_is_graded_when_restored(small_track: Path) -> None:
    updated(small_track)
    retire(small_track, "q1/1")
    edit(small_track, lambda item: item.update(question_text=item["question_text"].replace("1 of", "one of")))
    assert updated(small_track)[0].asked == []
    retire(small_track, retired=False)
    asked = updated(small_track)[0].asked
    assert {cell.item.item_id for cell in asked} == {"q1/1"}
    assert len(asked) == len({cell.text for cell in asked})


def test_a_retired_item_is_in_no_file_and_no_denominator(small_track: Path) -> None:
    (small_track / "trecexam.toml").write_text(
        '[track]\ndepth = 8\n[scores]\nmeasures = ["Cover(rel=4)@8"]\nlabel = "count"\nmin_rating = 4\n'
    )
    retire(small_track, "q1/1")
    grader, _ = updated(small_track)
    assert {cell.item.item_id for cell in grader.asked if cell.query_id == "q1"} == {"q1/0", "q1/2", "q1/3"}
    left = [f"question {n} of q1?" for n in (0, 2, 3)]
    values = {
        (row["run"], row["query_id"]): float(row["value"])
        for row in tsv_rows(small_track / "out/per_query.tsv")
    }
    for name in ("run0", "run1", "run2"):
        assert values[name, "q1"] == pytest.approx(cover(small_track, name, "q1", left), abs=1e-6)
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        assert "q1/1" not in {row["item_id"] for row in track.grades()}
        status = track.status()
    assert (status["items"], status["retired_items"]) == (11, 1)
    counts = json.loads((small_track / "out/manifest.json").read_text())["counts"]
    assert (counts["items"], counts["retired_items"]) == (11, 1)


def test_a_query_whose_items_are_all_retired_is_removed_and_reported_once(small_track: Path) -> None:
    _, before = updated(small_track)
    assert before.rejected == ()
    retire(small_track, query_id="q2")
    grader, done = updated(small_track)
    assert grader.asked == []
    assert [str(row) for row in done.rejected] == [
        "bank.questions.jsonl: all items of query 'q2' are retired: it is not evaluated (lost: cell)"
    ]
    assert {row["query_id"] for row in tsv_rows(small_track / "out/per_query.tsv")} == {"q1", "q3"}
    assert "q2 " not in (small_track / "out/rubric.qrels").read_text()
    assert done.runs == 3


def test_a_bank_whose_items_are_all_retired_is_a_one_line_error(
    small_track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for query_id in ("q1", "q2", "q3"):
        retire(small_track, query_id=query_id)
    with pytest.raises(TrecexamError, match="every item that could be asked about is retired"):
        updated(small_track)
    error = printed(capsys, "watch", small_track, "--once", status=2).err
    assert "bank.questions.jsonl: every item that could be asked about is retired" in error
    assert len(error.splitlines()) == 1


def test_a_retired_item_keeps_the_ratings_of_people(
    small_track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # With official judgments people judge on their scale, in judgments.tsv.
    (small_track / "qrels.txt").unlink()
    updated(small_track)
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        track.override("q1", "q1-d00", 5, item="q1/1", who="ann", why="it says so")
        track.override("q2", "q2-d00", 1, who="ann", why="off topic")
    updated(small_track)
    with_people = contents(small_track / "out")
    retire(small_track, "q1/1")
    retire(small_track, query_id="q2")
    _, done = updated(small_track)
    assert "overrides.tsv" not in {row.file for row in done.rejected}
    human = tsv_rows(small_track / "out/human.tsv")
    assert [(row["query_id"], row["state"]) for row in human] == [("q1", "retired"), ("q2", "retired")]
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        with pytest.raises(TrecexamError, match="item 'q1/1' of query 'q1' is retired"):
            track.override("q1", "q1-d00", 3, item="q1/1", who="bob", why="no")
        with pytest.raises(TrecexamError, match="all items of query 'q2' are retired"):
            track.override("q2", "q2-d00", 3, who="bob", why="no")
    retire(small_track, retired=False)
    retire(small_track, query_id="q2", retired=False)
    updated(small_track)
    back = contents(small_track / "out")
    assert back["human.tsv"] == with_people["human.tsv"]
    assert back["rubric.qrels"] == with_people["rubric.qrels"]


@pytest.mark.parametrize(
    "row",
    [
        {"query_id": "q1", "questions": [{"question_text": "a?"}, {"question_text": "b?", "retired": True}]},
        {"query_id": "q1", "items": [{"nugget_text": "a"}, {"nugget_text": "b", "retired": True}]},
        {"qid": "q1", "nuggets": [{"text": "a"}, {"text": "b", "retired": True}]},
    ],
    ids=["questions", "items", "nuggets"],
)
def test_items_can_be_retired_in_every_form_with_one_line_per_query(small_track: Path, row: Any) -> None:
    (small_track / "bank.questions.jsonl").write_text(json.dumps(row) + "\n")
    assert [cell.item.text.strip("?") for cell in updated(small_track)[0].asked][:1] == ["a"]
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        assert (track.status()["items"], track.status()["retired_items"]) == (1, 1)
