"""`trecexam merge`: joins the answers of several packs by content."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from packs import forged, jsonl, lines_of, parts_of
from support import HashGrader, make_small_track

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.pack.reproducing import reproduce
from trecexam.graders import Cell


class Half(HashGrader):
    """Answers only the cells that it chooses, with the same identity as all."""

    def __init__(self, takes: Callable[[Cell], bool]) -> None:
        super().__init__()
        self.takes = takes

    def grade(self, cells):  # type: ignore[no-untyped-def]
        return super().grade(cell for cell in cells if self.takes(cell))


def packed(folder: Path, name: str, grader: HashGrader) -> Path:
    root = make_small_track(folder / name)
    with trecexam.open_track(root, grader=grader) as track:
        track.update()
        track.pack(folder / f"{name}.trecexam")
    return folder / f"{name}.trecexam"


def test_two_merged_halves_equal_the_whole_and_no_prompt_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = packed(tmp_path, "first", Half(lambda cell: cell.query_id == "q1"))
    rest = packed(tmp_path, "rest", Half(lambda cell: cell.query_id != "q1"))
    whole = packed(tmp_path, "whole", HashGrader())
    both = tmp_path / "both.trecexam"
    assert run(["merge", str(first), str(rest), "-o", str(both)]) == 0
    assert f"{rest}: 96 answers more, no conflicts" in capsys.readouterr().err
    assert parts_of(both)["answers.jsonl"] == parts_of(whole)["answers.jsonl"]
    done = reproduce(both, tmp_path / "again")
    assert not done.files
    assert "the pack has no digests of out/ to compare with" in done.notes[-1]
    for name in ("leaderboard.tsv", "per_query.tsv", "rubric.qrels", "agreement.tsv"):
        assert (tmp_path / "again/out" / name).read_bytes() == (tmp_path / "whole/out" / name).read_bytes()
    # In the other order the same answers are joined; merging a pack with itself changes nothing.
    assert run(["merge", str(rest), str(first), "-o", str(both)]) == 0
    assert parts_of(both)["answers.jsonl"] == parts_of(whole)["answers.jsonl"]
    assert run(["merge", str(whole), str(first), "-o", str(both)]) == 0
    assert both.read_bytes() == whole.read_bytes()


def test_a_conflict_is_listed_and_kept_and_an_error_is_not_a_conflict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = packed(tmp_path, "one", HashGrader())
    rows = lines_of(one, "answers.jsonl")
    other = [dict(row) for row in rows]
    other[0] |= {"rating": None, "status": "unparsed", "answer": "I would say 9"}
    other[1] |= {"rating": None, "status": "error", "answer": "HTTP 500"}
    changed = forged(one, tmp_path / "other.trecexam", {"answers.jsonl": jsonl(other)})
    both = tmp_path / "both.trecexam"
    assert run(["merge", str(one), str(changed), "-o", str(both)]) == 1
    said = capsys.readouterr()
    header, line = (each.split("\t") for each in said.out.splitlines())
    found = dict(zip(header, line, strict=True))
    assert (found["pack"], found["passage"], found["item"]) == (
        changed.name,
        rows[0]["passage"],
        rows[0]["item"],
    )
    assert (found["answer"], found["other_answer"]) == (rows[0]["answer"], "I would say 9")
    assert parts_of(both)["answers.jsonl"] == parts_of(one)["answers.jsonl"]
    assert lines_of(both, "conflicts.jsonl") == [{**other[0], "pack": changed.name}]
    # Merging again loses nothing, and an answer replaces an error.
    assert run(["merge", str(changed), str(both), "-o", str(tmp_path / "all.trecexam")]) == 1
    assert lines_of(tmp_path / "all.trecexam", "answers.jsonl") == [other[0], *rows[1:]]
    kept = lines_of(tmp_path / "all.trecexam", "conflicts.jsonl")
    assert [row["answer"] for row in kept] == ["I would say 9", rows[0]["answer"]]
    assert reproduce(both, tmp_path / "again").reproduced
