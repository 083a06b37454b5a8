"""Calls that people try first from Python work, or the error suggests the right one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ir_measures import nDCG
from rag_track import make_demo_with_two_graders
from support import ROOT

import trecexam
from trecexam.errors import TrecexamError


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


def test_wrong_arguments_suggest_the_right_call(track: trecexam.Track, folder: Path) -> None:
    for root in (None, 5):
        with pytest.raises(TrecexamError, match=f"^a track is opened by its folder's path, not by {root}$"):
            trecexam.open_track(root)  # type: ignore[arg-type]
    with pytest.raises(TrecexamError, match=r"track\[0\]: give a grader's name, one of rubric, "):
        track[0]  # type: ignore[index]
    with pytest.raises(TrecexamError, match=r"which plot\? There are leaderboard, .*scatter"):
        track.plot()
    with pytest.raises(TrecexamError, match=r"use trecexam.open_track\(\"mytrack\"\)"):
        trecexam.Track("mytrack")  # type: ignore[arg-type]
    with pytest.raises(TrecexamError, match=r'one run, query_id -> doc_id -> score; give {"NAME": run}'):
        trecexam.evaluate({"q01": {"canal-lock-01": 1.0}}, bank=folder / "bank.questions.jsonl")


def test_a_track_and_its_results_have_their_facts_as_attributes(track: trecexam.Track) -> None:
    agreement = track.agreement()
    assert agreement.kappa == agreement.found[0].binary.kappa.value
    assert agreement.accuracy == agreement.found[0].accuracy
    assert "kendall_tau" in track.correlate()
    assert track.name == "mytrack"
    assert list(track) == ["rubric", "support"]
    assert "umbrela" not in track
    assert next(iter(track.queries)) == "q01"
    assert "heat" in track.queries["q01"]
    assert set(track.measures) == set(track.leaderboard().measures)
    assert track["rubric"].measures == track["rubric"].leaderboard().measures
    found = track["rubric"].status()
    assert "cells" in found
    assert found["cells"] > found["missing"] == 0
    assert "cells" in list(found.to_pandas().name)
    assert track.status()["graders"]["rubric"]["cells"] == found["cells"]
    with pytest.raises(KeyError, match="'celsl' is neither a column nor a name of a row"):
        found["celsl"]


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


def test_a_track_and_a_group_of_calls_can_be_printed(track: trecexam.Track, tmp_path: Path) -> None:
    assert repr(track).startswith("<Track 'mytrack': 7 runs, 8 queries; rubric has graded ")
    assert repr(track.verify) == "<Verify of 'mytrack': grading, grid, missing, spurious>"
    broken = tmp_path / "broken"
    trecexam.make_demo_track(broken)
    with trecexam.open_track(broken) as unreadable:
        for path in broken.glob("bank*"):
            path.write_text("{")
        assert "which cannot be read: " in repr(unreadable) or "cannot grade" in repr(unreadable)


@pytest.mark.slow
def test_mypy_finds_unknown_names(tmp_path: Path) -> None:
    import mypy.api

    lines = (
        "import trecexam",
        "track = trecexam.open_track('t')",
        "reveal_type(track.exam.fit())",
        "reveal_type(track.correlate())",
        "track.exxam",
        "track.exam.fitt",
        "track.leaderbord()",
    )
    (tmp_path / "called.py").write_text("\n".join(lines))
    # With the options of the run of mypy before, so that what that found out is used again.
    arguments = ("--no-error-summary", "--config-file", str(ROOT / "pyproject.toml"))
    out, err, _ = mypy.api.run([*arguments, str(tmp_path / "called.py")])
    assert err == ""
    said = [line.partition("called.py:")[2] for line in out.splitlines()]
    assert [line.partition(":")[0] for line in said] == ["3", "4", "5", "6", "7"]
    assert "ExamFit" in said[0]
    assert "orrelation" in said[1]
    assert all("has no attribute" in line for line in said[2:])
