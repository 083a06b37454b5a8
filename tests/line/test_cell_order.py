"""The most useful cells first, and cells that can change nothing left out."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from support import HashGrader, hashed_rating, make_small_track, write_run

import trecexam
from trecexam.cli.main import run
from trecexam.errors import ConfigError
from trecexam.graders import Answer, Cell
from trecexam.graders.base import UngradedError
from trecexam.line.loader import opened
from trecexam.outputs.updates import Update

TRACK = "[track]\ndepth = 8\n"


class ModelGrader(HashGrader):
    """A grader that asks a language model, as it says."""

    cells_share: str | None = "nothing"


class WholeGrader(ModelGrader):
    cells_share = "answer"


def update(root: Path, grader: HashGrader, **how: bool) -> Update:
    with trecexam.open_track(root, grader=grader) as track:
        return track.update(**how)


def settings(root: Path, text: str) -> None:
    (root / "trecexam.toml").write_text(TRACK + text)


def outputs(root: Path) -> dict[str, bytes]:
    out = root / "out"
    return {
        path.relative_to(out).as_posix(): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and "history" not in path.parts
    }


def stored(root: Path) -> list[tuple[object, ...]]:
    """What is in the store, without its numbers of rows."""
    with opened(root, HashGrader()) as loader:
        track = loader.load()
        return sorted(
            (row["query_id"], row["doc_id"], row["item_id"], row["rating"], row["answer"])
            for row in track.grade_rows()
        )


def weight(root: Path, query_id: str, doc_id: str) -> float:
    """Computed from the run files."""
    total = 0.0
    for path in sorted((root / "runs").glob("*.run")):
        for line in path.read_text().splitlines():
            query, _, doc, rank, *_ = line.split()
            if (query, doc) == (query_id, doc_id) and int(rank) <= 8:
                total += 1 / math.log2(int(rank) + 1)
    return total


def test_the_passages_of_high_ranks_in_many_runs_are_asked_about_first(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t")
    grader = WholeGrader()
    update(root, grader)
    weights = [weight(root, cell.query_id, cell.doc_id) for cell in grader.asked]
    assert weights == pytest.approx(sorted(weights, reverse=True))
    # One answer is for all items of a passage, so these stay together.
    passages = [cell.doc_id for cell in grader.asked]
    assert len(list(dict.fromkeys(passages))) == 1 + sum(
        one != other for one, other in itertools.pairwise(passages)
    )


def test_of_each_passage_the_most_promising_item_is_asked_about_first(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t")
    lines = (root / "passages.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for number, record in enumerate(records):
        # It shares a rare word with one item.
        record["text"] += f" {number % 4}"
    (root / "passages.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    grader = ModelGrader()
    update(root, grader)
    first: dict[str, str] = {}
    for cell in grader.asked:
        first.setdefault(cell.doc_id, cell.item.text)
    texts = {record["docid"]: record["text"] for record in records}
    assert all(f"question {texts[doc_id][-1]} " in question for doc_id, question in first.items())
    # The second item of the best passage comes after the first one of passages with half its weight.
    assert len({cell.doc_id for cell in grader.asked[:4]}) > 1


def test_other_graders_go_by_the_bank(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t")
    plain, asked_to = HashGrader(), ModelGrader()
    update(root, plain)
    ids = [(cell.query_id, cell.doc_id, cell.item.item_id) for cell in plain.asked]
    assert ids == sorted(ids)
    other = make_small_track(tmp_path / "other", config=TRACK + '[cells]\norder = "bank"\n')
    update(other, asked_to)
    assert [cell.item.item_id for cell in asked_to.asked] == [cell.item.item_id for cell in plain.asked]


@pytest.mark.parametrize("share", ["nothing", "prompts", "answer"])
def test_any_order_and_any_stop_give_the_same_grades_and_the_same_bytes(tmp_path: Path, share: str) -> None:
    bank, root = make_small_track(tmp_path / "bank"), make_small_track(tmp_path / "useful")
    update(bank, HashGrader())
    seen: list[tuple[str, str]] = []
    for batches in (1, 2, 3, None):
        grader = ModelGrader(batch=5)
        grader.cells_share = share
        with trecexam.open_track(root, grader=grader) as track:
            done = track.update(
                stop=lambda grader=grader, most=batches: most is not None and grader.batches >= most
            )
        # What is being asked when it is to stop is not stored.
        seen += [(cell.doc_id, cell.item.item_id) for cell in grader.asked[: done.graded]]
        assert done.complete == (batches is None)
    assert len(seen) == len(set(seen)) == done.counts.cells
    assert stored(root) == stored(bank)
    made, expected = outputs(root), outputs(bank)
    assert made.keys() == expected.keys()
    assert [name for name, content in made.items() if content != expected[name]] == []


def test_a_label_that_is_best_already_is_left_out_and_labels_stay(tmp_path: Path) -> None:
    whole = make_small_track(tmp_path / "whole", items=9)
    update(whole, HashGrader())
    root = make_small_track(tmp_path / "t", items=9, config=TRACK + '[cells]\nstop = "label"\n')
    grader = ModelGrader(batch=1)
    done = update(root, grader)
    assert done.complete
    assert 0 < done.counts.missing == done.counts.cells - done.graded
    assert (root / "out" / "rubric.qrels").read_bytes() == (whole / "out" / "rubric.qrels").read_bytes()
    best: dict[str, int] = {}
    for cell in grader.asked:
        # Nothing was asked about a passage that had its best label.
        assert best.get(cell.doc_id, 0) < 5
        best[cell.doc_id] = max(best.get(cell.doc_id, 0), hashed_rating(cell.text, cell.item.text))
    # Nor is any cell missing of one that has not.
    per_passage = {doc: sum(cell.doc_id == doc for cell in grader.asked) for doc in best}
    assert all(per_passage[doc] == 9 for doc, rating in best.items() if rating < 5)
    assert done.rejected == ()
    assert f"{done.counts.missing:,} of {done.counts.cells:,} cells are left out" in done.cautions[0]
    assert "Cover(rel=4)@8" in done.cautions[0]
    assert " nDCG@8" not in done.cautions[0]
    manifest = json.loads((root / "out" / "manifest.json").read_text())
    assert manifest["left_out"] == {"stop": "label", "cells": done.counts.missing}
    assert manifest["complete"]
    assert "partial" not in manifest
    with trecexam.open_track(root, grader=grader) as track:
        assert track.status()["left_out"] == done.counts.missing
        assert track.leaderboard().notes[0] == done.cautions[0]


def test_a_stop_rating_leaves_out_the_rest_of_passages_that_reached_it(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", items=9, config=TRACK + "[cells]\nstop = 3\n")
    grader = ModelGrader(batch=1)
    done = update(root, grader)
    ratings: dict[str, list[int]] = {}
    for cell in grader.asked:
        ratings.setdefault(cell.doc_id, []).append(hashed_rating(cell.text, cell.item.text))
    assert all(max(of_passage[:-1], default=0) < 3 for of_passage in ratings.values())
    assert all(len(of_passage) == 9 or of_passage[-1] >= 3 for of_passage in ratings.values())
    # Labels are graded further than the rating where it stopped.
    assert " nDCG@8" in done.cautions[0]


def test_cells_that_were_left_out_are_graded_when_asked_and_none_twice(tmp_path: Path) -> None:
    whole = make_small_track(tmp_path / "whole", items=9)
    update(whole, HashGrader())
    root = make_small_track(tmp_path / "t", items=9, config=TRACK + '[cells]\nstop = "label"\n')
    first, again, rest = ModelGrader(batch=1), ModelGrader(), ModelGrader()
    left_out = update(root, first).counts.missing
    assert not update(root, again).changed
    assert again.asked == []
    done = update(root, rest, all_cells=True)
    assert (done.graded, done.counts.missing) == (left_out, 0)
    asked = [(cell.doc_id, cell.item.item_id) for cell in (*first.asked, *rest.asked)]
    assert len(asked) == len(set(asked))
    assert stored(root) == stored(whole)
    with trecexam.open_track(root, grader=rest) as track:
        assert track.status()["stored_grades"] == done.counts.cells


def test_a_grader_is_not_started_where_all_that_is_missing_is_left_out(tmp_path: Path) -> None:
    class Unstarted(ModelGrader):
        def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
            raise AssertionError("started")

    root = make_small_track(tmp_path / "t", items=9, config=TRACK + '[cells]\nstop = "label"\n')
    assert update(root, ModelGrader(batch=1)).counts.missing
    write_run(root / "runs" / "again.run", {"q1": ["q1-d00", "q1-d01"]})
    done = update(root, Unstarted())
    assert (done.changed, done.graded, done.complete, done.rejected) == (True, 0, True, ())


def test_without_stop_the_next_update_grades_what_was_left_out(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", items=9, config=TRACK + "[cells]\nstop = 2\n")
    left_out = update(root, ModelGrader(batch=1)).counts.missing
    settings(root, "")
    assert update(root, ModelGrader()).graded == left_out > 0


@pytest.mark.parametrize("measures", [["nDCG@8"], ["nDCG@8", "Cover(rel=4)@8"]])
def test_what_can_change_no_label_any_more_comes_last_unless_a_measure_is_on_items(
    tmp_path: Path, measures: list[str]
) -> None:
    root = make_small_track(tmp_path / "t", items=9, config=f"{TRACK}[scores]\nmeasures = {measures}\n")
    grader = ModelGrader(batch=1)
    update(root, grader)
    best: dict[str, int] = {}
    settled = []
    for cell in grader.asked:
        settled.append(best.get(cell.doc_id, 0) == 5)
        best[cell.doc_id] = max(best.get(cell.doc_id, 0), hashed_rating(cell.text, cell.item.text))
    assert any(settled)
    assert (settled == sorted(settled)) == (len(measures) == 1)


def test_a_person_s_rating_counts_for_what_is_left_out(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", items=4, config=TRACK + '[cells]\nstop = "label"\n')
    with trecexam.open_track(root, grader=ModelGrader()) as track:
        track.override("q1", "q1-d00", rating=1, who="ann", why="off topic")
    grader = ModelGrader(batch=1)
    done = update(root, grader)
    assert not any(cell.doc_id == "q1-d00" for cell in grader.asked)
    assert done.rejected == ()


def test_an_item_that_two_queries_ask_is_never_left_out(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", queries=2, items=6, config=TRACK + "[cells]\nstop = 1\n")
    bank = root / "bank.questions.jsonl"
    bank.write_text(bank.read_text().replace("question 5 of q2?", "question 5 of q1?"))
    grader = ModelGrader(batch=1)
    update(root, grader)
    shared = {cell.doc_id for cell in grader.asked if cell.item.text == "question 5 of q1?"}
    assert shared == {cell.doc_id for cell in grader.asked}


def test_a_grader_that_gave_no_answer_is_named_beside_what_was_left_out(tmp_path: Path) -> None:
    class Forgetful(ModelGrader):
        def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
            for batch in super().grade(cells):
                yield [(cell, answer) for cell, answer in batch if cell.doc_id != "q1-d00"]

    root = make_small_track(tmp_path / "t", items=9, config=TRACK + '[cells]\nstop = "label"\n')
    done = update(root, Forgetful(batch=1))
    assert done.counts.missing > 9
    assert "left 9 of" in done.rejected[0].reason
    assert "'q1-d00'" in done.rejected[0].reason


def test_a_limit_ends_grading_after_the_most_useful_cells(tmp_path: Path) -> None:
    class Limited(ModelGrader):
        def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
            for number, batch in enumerate(super().grade(cells)):
                if number == 2:
                    raise UngradedError("`max_requests` = 14 is reached")
                yield batch

    root = make_small_track(tmp_path / "t")
    whole, limited = ModelGrader(), Limited()
    done = update(root, limited)
    assert (done.graded, done.complete) == (14, False)
    update(make_small_track(tmp_path / "whole"), whole)
    assert limited.asked[:14] == whole.asked[:14]


def test_a_stop_rating_does_not_go_with_labels_that_count_items(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t", config=TRACK + '[scores]\nlabel = "count"\n[cells]\nstop = 4\n')
    with pytest.raises(ConfigError, match=r'`cells\.stop` = 4: labels "count" items'):
        update(root, ModelGrader())


def test_the_commands_say_what_is_left_out_and_grade_it_when_told(
    graded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trecexam.graders.recorded.BATCH", 1)
    shutil.rmtree(graded / ".trecexam")
    with (graded / "trecexam.toml").open("a") as config:
        config.write('[cells]\nstop = "label"\n')
    capsys.readouterr()
    assert run(["watch", str(graded), "--once"]) == 0
    assert 'cells are left out (`stop` = "label" in [cells])' in capsys.readouterr().err
    assert run(["leaderboard", str(graded)]) == 0
    said = capsys.readouterr().err
    assert "are left out" in said
    assert "have no grade" not in said
    assert "are left out" in (graded / "out" / "report.html").read_text()
    assert run(["watch", str(graded), "--once"]) == 0
    assert "nothing new" in capsys.readouterr().err
    assert run(["watch", str(graded), "--once", "--all-cells"]) == 0
    assert "cells graded" in capsys.readouterr().err
    assert run(["leaderboard", str(graded)]) == 0
    assert "left out" not in capsys.readouterr().err
