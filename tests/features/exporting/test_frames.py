"""Results for notebooks: leaderboards, values and grades as data frames, and a leaderboard in HTML."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import ir_measures
import pandas
import polars
import pyarrow
import pytest
from support import HashGrader, make_small_track

import trecexam
from trecexam import TrecexamError
from trecexam.scores.leaderboard import Leaderboard, Row, Score
from trecexam.tables.table import Table

MEASURES = ["nDCG@10", "Cover(rel=4)@5"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = make_small_track(
        tmp_path_factory.mktemp("frames") / "track", config="[track]\ndepth = 8\n[report]\nwrite = false\n"
    )
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
    return root


@pytest.fixture
def track(root: Path) -> Iterator[trecexam.Track]:
    with trecexam.open_track(root, grader=HashGrader()) as track:
        yield track


def test_no_measure_at_all_is_an_error(track: trecexam.Track) -> None:
    for call in (track.leaderboard, track.per_query, track.compare):
        with pytest.raises(ValueError, match="measures: name at least one, or None for the track's own"):
            call([])


def test_a_leaderboard_converts_to_a_data_frame_of_every_library(track: trecexam.Track) -> None:
    board = track.leaderboard(MEASURES)
    header = ["run", "nDCG@10", "nDCG@10.stderr", "Cover(rel=4)@5", "Cover(rel=4)@5.stderr"]
    rows = [
        (row.run, *(value for score in row.scores for value in (score.mean, score.stderr)))
        for row in board.rows
    ]
    for frame in (board.to_polars(), polars.DataFrame(board)):
        assert frame.columns == header
        assert frame.rows() == rows
    assert list(board.to_pandas().itertuples(index=False, name=None)) == rows
    assert pyarrow.table(board).schema.types == [pyarrow.string(), *[pyarrow.float64()] * 4]


def test_a_leaderboard_without_runs_keeps_its_column_types() -> None:
    board = Leaderboard(("nDCG@10",), 0, "all", ())
    assert pyarrow.table(board).schema.types == [pyarrow.string(), pyarrow.float64(), pyarrow.float64()]
    assert "<tbody></tbody>" in board._repr_html_()


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


def test_a_notebook_shows_ranks_means_and_notes_without_scripts() -> None:
    rows = tuple(Row(f"<b>{n}", 2, 2, (Score(1 - n / 100, 0.25),)) for n in range(60))
    board = Leaderboard(
        ("P(rel=4)@5",), 2, "all", (rows[0], replace(rows[0], run="&"), *rows[1:]), ("a < b",)
    )
    html = board._repr_html_()
    assert "<td>1</td><td style='text-align: left'>&lt;b&gt;0</td><td>1.0000 ±0.250</td>" in html
    assert "<td>1</td><td style='text-align: left'>&amp;</td>" in html
    assert "<td>3</td><td style='text-align: left'>&lt;b&gt;1</td>" in html
    assert "<th>P(rel=4)@5</th>" in html
    assert "a &lt; b" in html
    assert "11 more rows" in html
    assert html.count("<tr>") == 51
    assert "<b>" not in html
    html = replace(board, notes=tuple("abcdefgh"))._repr_html_()
    assert "<small>e</small>" in html
    assert "<small>f</small>" not in html
    assert "3 more notes" in html


def test_per_query_values_equal_the_file_in_full_precision(root: Path, track: trecexam.Track) -> None:
    frame = track.per_query(library="pyarrow")
    some = track.per_query(MEASURES, runs=["run1"])
    board = track.leaderboard(MEASURES)
    official = track.per_query(["P(rel=2)@5"], official=True, library="polars")
    assert frame.schema.types == [*[pyarrow.string()] * 3, pyarrow.float64()]
    lines = [line.split("\t") for line in (root / "out" / "per_query.tsv").read_text().splitlines()]
    assert [
        frame.column_names,
        *([*row[:3], f"{row[3]:.6f}"] for row in zip(*frame.to_pydict().values(), strict=True)),
    ] == lines
    means = some.groupby("measure")["value"].mean()
    (row,) = (row for row in board.rows if row.run == "run1")
    assert [means[name] for name in MEASURES] == pytest.approx([score.mean for score in row.scores])
    assert official["measure"].unique().to_list() == ["P(rel=2)@5"]


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


def test_other_tables_convert_to_data_frames_too(track: trecexam.Track) -> None:
    table = track.compare(["nDCG@10"]).tables["differences"]
    frame = table.to_polars()
    assert frame.columns == list(table.header)
    assert frame.rows() == list(table.rows)
    mixed = Table(("a", "b"), ((1, "x"), ("y", None)))
    assert mixed.to_pandas()["a"].tolist() == ["1", "y"]
    assert pyarrow.table(mixed)["b"].to_pylist() == ["x", None]
    html = Table(("a<", "b", "c"), (("<x>", 1, 0.25), ("\u202ey", None, -1.0)))._repr_html_()
    assert "<th>a&lt;</th>" in html
    assert "<td style='text-align: left'>&lt;x&gt;</td><td>1</td><td>0.2500</td>" in html
    assert "\u202e" not in html


def test_ir_measures_accepts_the_runs_and_judgments_of_a_track(track: trecexam.Track) -> None:
    board = track.leaderboard(["nDCG@5"], official=True, runs=["run1"])
    values = ir_measures.calc_aggregate(
        [ir_measures.nDCG @ 5], track.export.official_qrels(), track.export.runs(["run1"])["run1"]
    )
    assert values[ir_measures.nDCG @ 5] == pytest.approx(board.rows[0].scores[0].mean)


def test_qrels_are_the_same_in_every_library(track: trecexam.Track) -> None:
    of_pandas = track.export.qrels_frame()
    pandas.testing.assert_frame_equal(track.export.qrels_frame(library="polars").to_pandas(), of_pandas)
    assert track.export.qrels_frame(library="pyarrow").column_names == list(of_pandas.columns)


def test_a_missing_library_is_reported_with_its_extra(
    track: trecexam.Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(TrecexamError, match=r"needs polars: pip install polars$"):
        track.leaderboard().to_polars()
    with pytest.raises(TrecexamError, match="no data frames of 'panda'; did you mean 'pandas'"):
        track.per_query(library="panda")  # type: ignore[arg-type]
