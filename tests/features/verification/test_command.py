"""`trecexam verify`: checks of the grades by an organizer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import HashGrader, hashed_rating, make_small_track, printed, tsv_table

import trecexam
from trecexam.cli.main import run

VIEWS = ("grading", "grid", "missing", "spurious")
Rating = dict[tuple[str, str], int]


def out(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    return printed(capsys, "verify", *arguments).out


def on_terminal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The output on a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trecexam.cli.reading.on_terminal", lambda: True)
        return out(capsys, *arguments)


def err(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 2) -> str:
    return printed(capsys, "verify", *arguments, status=status).err


def table(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[dict[str, str]]:
    return tsv_table(out(capsys, *arguments))


@pytest.fixture
def ratings(graded: Path) -> Rating:
    """(passage, item) -> rating of the pool, from the recording."""
    rows = map(json.loads, (graded / "grades.jsonl").read_text().splitlines())
    return {(row["doc_id"], row["item_id"]): row["rating"] for row in rows}


@pytest.fixture
def judgments(graded: Path) -> dict[str, int]:
    rows = map(str.split, (graded / "qrels.txt").read_text().splitlines())
    return {doc_id: int(label) for _, _, doc_id, label in rows}


def test_grading_lists_every_cell_with_its_answer_best_rating_first(
    graded: Path, ratings: Rating, judgments: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table(capsys, "grading", graded)
    assert {(r["doc_id"], r["item_id"]): int(r["rating"]) for r in rows} == ratings
    assert len(rows) == len(ratings)
    order = [(r["query_id"], int(r["item_index"]), -int(r["rating"]), r["doc_id"]) for r in rows]
    assert order == sorted(order)
    for row in rows:
        assert row["answer"] == f"says {row['rating']}"
        assert row["text"] == f"passage {int(row['doc_id'][-2:])} about {row['query_id']}"
        assert row["item"] == f"question {row['item_id'][-1]} of {row['query_id']}?"
        assert int(row["judgment"]) == judgments[row["doc_id"]]
        assert (row["status"], row["source"]) == ("ok", "model")


def test_grading_distinguishes_cells_without_a_rating_by_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grader = HashGrader()
    grader.status = lambda cell: {"q1/0": "unparsed", "q1/1": "refused"}.get(cell.item.item_id, "ok")
    root = make_small_track(tmp_path / "t", queries=1)
    lines = (root / "passages.jsonl").read_text().splitlines(keepends=True)
    (root / "passages.jsonl").write_text("".join(lines[1:]))
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        by_item = {key: cells for (key,), cells in track.verify.grading().table.grouped("item_id")}
    assert {cell["status"] for cell in by_item["q1/0"]} == {"unparsed", "no_text"}
    assert {cell["status"] for cell in by_item["q1/1"]} == {"refused", "no_text"}
    assert [(c["doc_id"], c["rating"], c["answer"]) for c in by_item["q1/2"] if c["status"] != "ok"] == [
        ("q1-d00", None, "")
    ]


def test_the_grid_has_one_row_per_passage_and_one_column_per_item(
    graded: Path, ratings: Rating, judgments: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table(capsys, "grid", graded, "--min-rating", "3")
    assert len(rows) == len({doc_id for doc_id, _ in ratings})
    for row in rows:
        mine = [ratings[row["doc_id"], f"{row['query_id']}/{n}"] for n in range(4)]
        assert [int(row[f"item.{n + 1}"]) for n in range(4)] == mine
        assert int(row["judgment"]) == judgments[row["doc_id"]]
        assert int(row["label"]) == max(mine)
        assert int(row["reached"]) == sum(rating >= 3 for rating in mine)
    order = [(r["query_id"], -int(r["judgment"]), -int(r["label"])) for r in rows]
    assert order == sorted(order)
    value = json.loads(out(capsys, "grid", graded, "--json", "-q", "q2", "--item", "q2/3", "--top", "1"))
    (item,) = value["items"]
    assert (item["item_index"], item["item_id"], item["item"]) == (4, "q2/3", "question 3 of q2?")
    assert item["reached"] == sum(r >= 4 for (_, item_id), r in ratings.items() if item_id == "q2/3")
    (passage,) = value["grid"]
    assert passage["item.4"] == ratings[passage["doc_id"], "q2/3"]


def test_missing_lists_the_relevant_passages_that_reach_no_item(
    graded: Path, ratings: Rating, judgments: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    pooled = {doc_id for doc_id, _ in ratings}
    best = {d: max(ratings[d, f"{d[:2]}/{n}"] for n in range(4)) for d in pooled}
    expected = {d: best[d] for d in pooled if judgments[d] >= 2 and best[d] < 5}
    rows = table(capsys, "missing", graded, "--min-rating", "5", "--min-relevant", "2")
    assert {row["doc_id"]: int(row["best_rating"]) for row in rows} == expected
    assert expected
    for row in rows:
        at_best = [
            str(n + 1)
            for n in range(4)
            if ratings[row["doc_id"], f"{row['query_id']}/{n}"] == best[row["doc_id"]]
        ]
        assert row["best_items"].split() == at_best
    counts = table(capsys, "missing", graded, "--min-rating", "5", "--min-relevant", "2", "--per-query")
    for row in counts:
        relevant = {d for d, label in judgments.items() if label >= 2 and d.startswith(row["query_id"])}
        missed = {d for d in expected if d.startswith(row["query_id"])}
        assert [int(row[name]) for name in ("relevant", "missed", "reached", "outside_pool", "unrated")] == [
            len(relevant),
            len(missed),
            len(relevant & pooled - missed),
            len(relevant - pooled),
            0,
        ]
    value = json.loads(out(capsys, "missing", graded, "--min-rating", "5", "--min-relevant", "2", "--json"))
    assert {row["doc_id"] for row in value["missing"]} == expected.keys()
    assert value["missed"] == sum(row["missed"] for row in value["queries"]) == len(expected)


def test_relevant_passages_without_any_rating_are_not_listed_as_missed(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", queries=1)
    lines = (root / "passages.jsonl").read_text().splitlines(keepends=True)
    (root / "passages.jsonl").write_text("".join(lines[1:]))
    (root / "qrels.txt").write_text("q1 0 q1-d00 1\nq1 0 q1-d01 1\nq1 0 q1-d02 1\nq1 0 elsewhere 1\n")
    grader = HashGrader()
    grader.status = lambda cell: "unparsed" if cell.doc_id == "q1-d01" else "ok"
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        (found,) = track.verify.missing(min_rating=1, per_query=True)
    reaches = any(hashed_rating("passage 2 about q1", f"question {n} of q1?") for n in range(4))
    assert tuple(found[name] for name in ("without_text", "unrated", "outside_pool")) == (1, 1, 1)
    assert (found["reached"], found["missed"]) == (int(reaches), int(not reaches))


def test_spurious_counts_the_passages_that_reach_an_item(
    graded: Path, ratings: Rating, judgments: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table(capsys, "spurious", graded, "--min-rating", "3", "--min-relevant", "2")
    assert len(rows) == 12
    for row in rows:
        mine = {d: r for (d, i), r in ratings.items() if i == row["item_id"]}
        for name, docs in (
            ("relevant", [d for d in mine if judgments[d] >= 2]),
            ("nonrelevant", [d for d in mine if judgments[d] < 2]),
        ):
            assert int(row[name]) == len(docs)
            assert int(row[f"{name}_reached"]) == sum(mine[d] >= 3 for d in docs)
    doubts = [float(row["phi"] or 0) for row in rows]
    assert doubts == sorted(doubts)
    counts = [
        int(r["nonrelevant_reached"]) for r in table(capsys, "spurious", graded, "--sort", "nonrelevant")
    ]
    assert counts == sorted(counts, reverse=True)
    assert len(table(capsys, "spurious", graded, "--top", "3")) == 3
    value = json.loads(out(capsys, "spurious", graded, "--item", "q1/2", "--json"))
    assert [item["item_id"] for item in value["spurious"]] == ["q1/2"]


def test_queries_without_judgments_are_reported_and_left_out(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (graded / "qrels.txt").read_text().splitlines(keepends=True)
    (graded / "qrels.txt").write_text("".join(line for line in lines if line.startswith("q1")))
    assert {row["query_id"] for row in table(capsys, "spurious", graded)} == {"q1"}
    assert "left out because they have no official judgments: 2 queries ('q2', 'q3')" in err(
        capsys, "missing", graded, status=0
    )
    assert "qrels.txt: no official judgments of 'q2'" in err(capsys, "missing", graded, "-q", "q2")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["grading", "-q", "q4"], "no query 'q4' in the bank\n"),
        (["grid", "-q", "q1", "--item", "q2/0"], "no item 'q2/0' in the bank; did you mean 'q1/0'?"),
        (["grid", "--doc", "q1-d99"], "no passage 'q1-d99' in the pool; did you mean"),
        (["spurious", "--min-rating", "6"], "6 is not in the range 1<=x<=5"),
    ],
)
def test_missing_data_is_a_one_line_error(
    graded: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    text = err(capsys, *arguments[:1], graded, *arguments[1:])
    assert reason in text
    assert text.count("\n") == 1


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graded track whose passages, items and answers contain terminal control characters."""
    bad = "\x1b]0;owned\x07 \x9b2J \u202e evil"
    root = make_small_track(tmp_path_factory.mktemp("hostile") / "t", queries=1)
    for name in ("passages.jsonl", "bank.questions.jsonl"):
        text = (root / name).read_text()
        evil = json.dumps(bad)[1:-1]
        (root / name).write_text(text.replace("about", evil).replace("question ", f"question {evil} "))
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.grading.grade()
        lines = [json.dumps({**row, "answer": bad}) + "\n" for row in track.grades()]
    (root / "grades.jsonl").write_text("".join(lines))
    (root / "trecexam.toml").write_text('[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n')
    assert run(["watch", str(root), "--once"]) == 0
    return root


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", ["text", "tsv", "json"])
def test_terminal_control_characters_in_passages_answers_and_items_are_escaped(
    hostile: Path, capsys: pytest.CaptureFixture[str], view: str, shape: str
) -> None:
    shown = on_terminal if shape == "text" else out
    more = ["--min-rating" if view != "grading" else "--top", "5", *(["--json"] if shape == "json" else [])]
    text = shown(capsys, view, hostile, *more)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    # A terminal may cut an item's text within the escape.
    escape = {"json": r"\u001b", "tsv": r"\x1b", "text": r"\x"}[shape]
    assert escape in text or (view, shape) == ("grid", "tsv")


def test_ratings_by_people_are_marked_and_count(
    graded: Path, ratings: Rating, capsys: pytest.CaptureFixture[str]
) -> None:
    doc_id = next(d for (d, i), r in ratings.items() if i == "q1/2" and r < 5)
    other = next(d for d, _ in ratings if d.startswith("q1") and d != doc_id)
    said = ["override", str(graded), "--query", "q1", "--who", "Ann", "--why", "read it"]
    assert run([*said, "--doc", doc_id, "--item", "q1/2", "--rating", "5"]) == 0
    # With official judgments it is on their scale, and no label of the grader.
    aside = (graded / "qrels.txt").rename(graded / "aside.qrels")
    assert run([*said, "--doc", other, "--rating", "4"]) == 0
    aside.rename(graded / "qrels.txt")
    (row,) = table(capsys, "grading", graded, "--doc", doc_id, "--item", "q1/2")
    assert (row["rating"], row["source"], int(row["machine"])) == ("5", "human", ratings[doc_id, "q1/2"])
    (row,) = table(capsys, "grading", graded, "--doc", doc_id, "--item", "q1/1")
    assert (row["source"], row["rating"]) == ("model", row["machine"])
    by_doc = {row["doc_id"]: row for row in table(capsys, "grid", graded, "-q", "q1")}
    assert {d: r["human"] for d, r in by_doc.items() if r["human"]} == {doc_id: "3", other: "label"}
    assert (by_doc[doc_id]["item.3"], by_doc[other]["label"]) == ("5", "4")
    text = on_terminal(capsys, "grid", graded, "-q", "q1")
    assert re.search(rf"\n{doc_id} .* 5\*  [0-5]\n", text)
    assert "; * rated by a person\n" in text
    for view in VIEWS:
        assert "as a whole (Ann)" in err(capsys, view, graded, status=0)
    before = {(r["doc_id"], r["item_id"]): r["rating"] for r in table(capsys, "grading", graded)}
    assert {key: int(rating) for key, rating in before.items()} == ratings | {(doc_id, "q1/2"): 5}


def test_negative_judgments_count_as_not_relevant(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = table(capsys, "spurious", graded)
    lines = (graded / "qrels.txt").read_text().splitlines()
    (graded / "qrels.txt").write_text("".join(re.sub(" 0$", " -2", line) + "\n" for line in lines))
    assert table(capsys, "spurious", graded) == before
    assert table(capsys, "missing", graded)
    assert {r["judgment"] for r in table(capsys, "grid", graded)} == {"0", "1", "2", "3"}
