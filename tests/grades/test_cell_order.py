"""The most useful cells are graded first, and any order gives the same grades and files."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from support import REPORTED, HashGrader, contents, make_small_track, update

import trecexam
from trecexam.graders import Answer, Cell
from trecexam.graders.base import UngradedError
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.track_graders import open_folder

TRACK = "[track]\ndepth = 8\n"


class ModelGrader(HashGrader):
    """A grader that declares to use a language model."""

    cells_share: str | None = "nothing"


class WholeGrader(ModelGrader):
    cells_share = "answer"


def stored(root: Path) -> list[tuple[object, ...]]:
    """What is in the store, without its numbers of rows."""
    with OpenTrack(open_folder(root), HashGrader()) as loaders:
        loader = loaders.first
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


def test_passages_at_high_ranks_in_many_runs_are_graded_first(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t")
    grader = WholeGrader()
    update(root, grader)
    weights = [weight(root, cell.query_id, cell.doc_id) for cell in grader.asked]
    assert weights == pytest.approx(sorted(weights, reverse=True))
    # One answer covers all items of a passage, so these stay together.
    passages = [cell.doc_id for cell in grader.asked]
    assert len(list(dict.fromkeys(passages))) == 1 + sum(
        one != other for one, other in itertools.pairwise(passages)
    )


def test_within_each_passage_the_most_promising_item_is_graded_first(tmp_path: Path) -> None:
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


def test_other_graders_use_the_order_of_the_bank(tmp_path: Path) -> None:
    root = make_small_track(tmp_path / "t")
    plain, asked_to = HashGrader(), ModelGrader()
    update(root, plain)
    ids = [(cell.query_id, cell.doc_id, cell.item.item_id) for cell in plain.asked]
    assert ids == sorted(ids)
    other = make_small_track(tmp_path / "other", config=TRACK + '[cells]\norder = "bank"\n')
    update(other, asked_to)
    assert [cell.item.item_id for cell in asked_to.asked] == [cell.item.item_id for cell in plain.asked]


@pytest.mark.parametrize("share", ["nothing", "prompts", "answer"])
def test_any_order_gives_the_same_grades_and_bytes(tmp_path: Path, share: str) -> None:
    bank, root = (make_small_track(tmp_path / name, config=REPORTED) for name in ("bank", "useful"))
    update(bank, HashGrader())
    seen: list[tuple[str, str]] = []
    for batches in (1, 2, 3, None):
        grader = ModelGrader(batch=5)
        grader.cells_share = share
        with trecexam.open_track(root, grader=grader) as track:
            done = track.update(
                stop=lambda grader=grader, most=batches: most is not None and grader.batches >= most
            )
        # Cells in progress at the stop are not stored.
        seen += [(cell.doc_id, cell.item.item_id) for cell in grader.asked[: done.graded]]
        assert done.complete == (batches is None)
    assert len(seen) == len(set(seen)) == done.counts.cells
    assert stored(root) == stored(bank)
    made, expected = contents(root / "out"), contents(bank / "out")
    assert made.keys() == expected.keys()
    assert [name for name, content in made.items() if content != expected[name]] == []


def test_a_limit_stops_grading_after_the_most_useful_cells(tmp_path: Path) -> None:
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
