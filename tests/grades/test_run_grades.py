"""A run without a grade has no score; one with a part of its grades, or of its queries, is named."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from headings import score_columns
from support import HashGrader, make_small_track, tsv_rows, write_run

import converters
import trecexam
from trecexam.errors import TrecexamError
from trecexam.graders.base import UngradedError

QUERIES = ("q1", "q2", "q3")
UNGRADED = "no scores, since no cell has a grade: late"
PARTLY = "partly graded, so scores may be too low; cells with a grade: half 12 of 24"
SKIPS = "cut answers 1 of 3 queries; the others count as 0"


class Gone(HashGrader):
    """A grader whose server is gone."""

    def grade(self, cells: Any) -> Iterator[Any]:
        yield from ()
        raise UngradedError("the server is gone")


def dropped(root: Path, name: str, numbers: Sequence[int], queries: Sequence[str] = QUERIES) -> None:
    write_run(root / "runs" / f"{name}.run", {q: [f"{q}-d{n:02}" for n in numbers] for q in queries})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three graded runs, one that is cut off after a query, and two that came when the server was gone."""
    root = make_small_track(tmp_path / "t", config="[track]\ndepth = 3\n")
    dropped(root, "cut", (0, 1, 2), QUERIES[:1])
    with trecexam.open_track(root, grader=HashGrader()) as track:
        assert track.update().complete
    dropped(root, "late", (10, 11))
    dropped(root, "half", (11, 1))
    with trecexam.open_track(root, grader=Gone()) as track:
        assert track.update().why == "the server is gone"
    return root


@pytest.fixture
def track(root: Path) -> Iterator[trecexam.Track]:
    with trecexam.open_track(root, grader=Gone()) as opened:
        yield opened


def test_files_in_out_are_blank_for_a_run_without_a_grade(root: Path) -> None:
    out = root / "out"
    rows = {row["run"]: row for row in tsv_rows(out / "leaderboard.tsv")}
    assert {name: int(row["queries"]) for name, row in rows.items()} == {
        **dict.fromkeys(rows, 3),
        "cut": 1,
    }
    assert {rows["late"][name] for name in score_columns(rows["late"])} == {""}
    values = [row["value"] for row in tsv_rows(out / "per_query.tsv") if row["run"] == "late"]
    assert values
    assert set(values) == {""}
    assert not any("late" in (row["run_a"], row["run_b"]) for row in tsv_rows(out / "differences.tsv"))
    assert "late" not in {row["run"] for row in tsv_rows(out / "groups.tsv")}
    board = json.loads((out / "leaderboard.json").read_text())
    by_run = {row["run"]: row for row in board["runs"]}
    assert {score["mean"] for score in by_run["late"]["scores"].values()} == {None}
    assert (by_run["half"]["graded"], by_run["half"]["cells"]) == (12, 24)
    assert "graded" not in by_run["run0"]
    assert {UNGRADED, PARTLY, SKIPS} <= set(board["notes"])
    # The own file is read as an official one.
    ranks = {row.run: row.rank for row in converters.read(out / "leaderboard.tsv", "leaderboard")}
    assert sorted(ranks) == ["cut", "half", "run0", "run1", "run2"]


def test_a_run_without_a_grade_has_no_rank_and_is_compared_with_none(track: trecexam.Track) -> None:
    board = track.leaderboard()
    assert (board.rows[-1].run, board.ranks[-1]) == ("late", None)
    assert sorted(filter(None, board.ranks)) == [1, 2, 3, 4, 5]
    compared = track.compare()
    assert "late" not in compared.groups
    assert UNGRADED in compared.notes
    with pytest.raises(TrecexamError, match=UNGRADED):
        track.compare(baseline="late")
    correlated = track.correlate()
    assert {value.n_runs for _, value in correlated.pairs} == {5}
    assert {UNGRADED, SKIPS} <= set(correlated.notes)
    assert "compared over 3 queries and 5 runs" in correlated.notes
    history = track.folder.out / "history.tsv"
    assert not history.exists() or "\tlate\t" not in history.read_text()
    values = list(track.export.leaderboard_values())
    assert {row.run for row in values} == {"run0", "run1", "run2", "cut", "half"}
    per_query = track.per_query(library="pyarrow").to_pylist()
    assert all(math.isnan(row["value"]) for row in per_query if row["run"] == "late")
    official = track.leaderboard(official=True)
    assert None not in official.ranks
    assert SKIPS in official.notes
    assert official.table.header[:2] == ("run", "queries")


def test_runs_have_their_scores_once_they_are_graded_and_those_that_skip_queries_are_in_one_note(
    root: Path,
) -> None:
    dropped(root, "short", (0, 1), QUERIES[:2])
    with trecexam.open_track(root, grader=HashGrader()) as track:
        assert track.update().complete
        board = track.leaderboard()
    assert None not in board.ranks
    assert not {UNGRADED, PARTLY} & set(board.notes)
    assert "2 runs answer fewer than 3 queries, and the others count as 0: cut 1, short 2" in board.notes


def test_scores_of_the_other_runs_are_those_without_the_late_one(root: Path, track: trecexam.Track) -> None:
    def means(board: Any) -> Mapping[str, list[float]]:
        return {row.run: [score.mean for score in row.scores] for row in board.rows if row.run != "late"}

    measures = ["P@3", "Cover(rel=4)@3"]
    before = means(track.leaderboard(measures))
    (root / "runs" / "late.run").unlink()
    with trecexam.open_track(root, grader=Gone()) as other:
        assert means(other.leaderboard(measures)) == before
