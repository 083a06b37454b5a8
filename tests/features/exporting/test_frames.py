"""Results for notebooks: leaderboards, values and grades as data frames, and a leaderboard in HTML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas
import pyarrow
import pytest
from headings import score_columns
from support import HashGrader, make_small_track, update

import trecexam
from trecexam import TrecexamError
from trecexam.scores.leaderboard import Leaderboard

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


def test_no_measure_at_all_is_an_error(track: trecexam.Track) -> None:
    for call in (track.leaderboard, track.per_query, track.compare):
        with pytest.raises(ValueError, match="measures: name at least one, or None for the track's own"):
            call([])


def test_a_leaderboard_without_runs_keeps_its_column_types() -> None:
    board = Leaderboard(("nDCG@10",), 0, "all", ())
    schema = pyarrow.table(board).schema
    assert schema.field("run").type == pyarrow.string()
    assert {schema.field(name).type for name in score_columns(schema.names)} == {pyarrow.float64()}
    assert "<tbody>\n</tbody>" in board._repr_html_()


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


def test_qrels_are_the_same_in_every_library(track: trecexam.Track) -> None:
    of_pandas = track.export.qrels_frame()
    pandas.testing.assert_frame_equal(track.export.qrels_frame(library="polars").to_pandas(), of_pandas)
    assert track.export.qrels_frame(library="pyarrow").column_names == list(of_pandas.columns)
