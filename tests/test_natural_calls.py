"""Calls that people try first from Python work, or the error suggests the right one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ir_measures import nDCG
from rag_track import make_demo_with_two_graders

import trecexam


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("natural") / "mytrack"
    make_demo_with_two_graders(folder)
    with trecexam.open_track(folder) as track:
        track.update()
    return folder


@pytest.fixture
def track(folder: Path) -> Iterator[trecexam.Track]:
    with trecexam.open_track(folder) as track:
        yield track


def test_a_leaderboard_is_indexed_by_run_and_measure_and_has_its_best_run(track: trecexam.Track) -> None:
    board = track.leaderboard()
    assert "bm25" in board
    assert "nDCG@10" in board
    assert "bm26" not in board
    assert "bm25" in track["rubric"].leaderboard().table
    assert board["bm25"]["run"] == "bm25"
    assert board["bm25"]["rubric:nDCG@10"] == pytest.approx(0.487, abs=1e-3)
    assert board["nDCG@10"] == [row.scores["nDCG@10"].mean for row in board.rows]
    assert [row["run"] for row in board] == [row.run for row in board.rows]
    best = track.leaderboard(["nDCG@10"]).best
    assert best.run == "dense-rerank"
    assert best.scores["nDCG@10"] == best.scores[0]
    with pytest.raises(KeyError, match=r"the leaderboard has no 'AP'; it has rubric:nDCG@10"):
        best.scores["AP"]


def test_one_measure_needs_no_list(track: trecexam.Track) -> None:
    for one in ("nDCG@5", nDCG @ 5):
        for of in (track, track["rubric"]):
            assert of.leaderboard(one).to_tsv() == of.leaderboard(["nDCG@5"]).to_tsv()
            assert of.compare(one).to_tsv() == of.compare(["nDCG@5"]).to_tsv()
            assert of.per_query(one).equals(of.per_query(["nDCG@5"]))
            assert of.correlate(one, one).notes == of.correlate(["nDCG@5"], ["nDCG@5"]).notes
        official = track.leaderboard(one, official=True)
        assert official.notes == track.leaderboard(["nDCG@5"], official=True).notes


def test_a_result_of_one_of_several_graders_names_it(track: trecexam.Track) -> None:
    note = "shown for the grader rubric; --grader selects another: support"
    one = track["rubric"]
    for of_first, of_chosen in (
        (track.holes(), one.holes()),
        (track.compare(), one.compare()),
        (track.verify.grid(), one.verify.grid()),
        (track.fill.find(), one.fill.find()),
        (track.bank.check(), one.bank.check()),
        (track.judge_next(top=1), one.judge_next(top=1)),
    ):
        assert [note] == [line for line in of_first.notes if line not in of_chosen.notes]
    assert note not in track.compare("rubric:nDCG@5").notes
    assert note not in track.leaderboard().notes
