"""Results for notebooks: leaderboards, values and grades as data frames, and a leaderboard in HTML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from support import HashGrader, make_small_track, update

import trecexam
from trecexam import TrecexamError

MEASURES = ["nDCG@10", "Cover(rel=4)@5"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_small_track(
        tmp_path_factory.mktemp("frames") / "track", config="[track]\ndepth = 8\n[report]\nwrite = false\n"
    )
    update(root)
    return root


@pytest.fixture
def track(root: Path) -> Iterator[trecexam.Track]:
    with trecexam.open_track(root, grader=HashGrader()) as track:
        yield track


def test_a_leaderboard_can_be_restricted_to_some_runs(track: trecexam.Track) -> None:
    rows = {row.run: row for row in track.leaderboard(MEASURES).rows}
    assert {row.run: row for row in track.leaderboard(MEASURES, runs=["run2", "run0"]).rows} == {
        run: rows[run] for run in ("run0", "run2")
    }
    assert track.leaderboard(runs=[]).rows == ()
    official = track.leaderboard(MEASURES[:1], official=True, runs=("run1",))
    assert [row.run for row in official.rows] == ["run1"]
    with pytest.raises(TrecexamError, match="no run 'run9'; did you mean 'run"):
        track.leaderboard(runs=["run9"])
    for call in (track.leaderboard, track.per_query, track.export.runs):
        with pytest.raises(TrecexamError, match=r"^runs: give a list, as \['run1'\]$"):
            call(runs="run1")


def test_the_frame_of_grades_has_people_next_to_the_grader(root: Path, track: trecexam.Track) -> None:
    rows = list(track.grades())
    first = rows[0]
    cell = [first[name] for name in ("query_id", "doc_id")]
    track.override(*cell, 5, item=first["item_id"], who="ann", why="so")
    frame = track.export.grades_frame()
    arrow = track.export.grades_frame(library="pyarrow")
    (root / "overrides.tsv").unlink()
    ids = ["query_id", "doc_id", "item_id"]
    assert list(frame.columns) == [
        *ids,
        "rating",
        "human_rating",
        "who",
        "status",
        "answer",
        "model",
        "prompt",
    ]
    assert list(frame[[*ids, "rating", "status", "answer"]].itertuples(index=False, name=None)) == [
        tuple(row[name] for name in (*ids, "rating", "status", "answer")) for row in rows
    ]
    assert arrow.schema.field("rating").type == arrow.schema.field("human_rating").type == pyarrow.int64()
    rated = frame[frame["human_rating"] >= 0]
    assert len(rated) == 1
    assert tuple(rated.iloc[0][[*ids, "human_rating", "who"]]) == (*(first[name] for name in ids), 5, "ann")
