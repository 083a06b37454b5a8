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


def test_a_leaderboard_can_be_indexed_by_run_and_measure(track: trecexam.Track) -> None:
    board = track.leaderboard()
    assert board["bm25"]["run"] == "bm25"
    assert board["bm25"]["rubric:nDCG@10"] == pytest.approx(0.487, abs=1e-3)
    assert board["nDCG@10"] == [row.scores["nDCG@10"].mean for row in board.rows]
    assert [row["run"] for row in board] == [row.run for row in board.rows]


def test_one_measure_needs_no_list(track: trecexam.Track) -> None:
    for one in ("nDCG@5", nDCG @ 5):
        for of in (track, track["rubric"]):
            assert of.leaderboard(one).to_tsv() == of.leaderboard(["nDCG@5"]).to_tsv()
            assert of.compare(one).to_tsv() == of.compare(["nDCG@5"]).to_tsv()
            assert of.per_query(one).equals(of.per_query(["nDCG@5"]))
            assert of.correlate(one, one).notes == of.correlate(["nDCG@5"], ["nDCG@5"]).notes
        official = track.leaderboard(one, official=True)
        assert official.notes == track.leaderboard(["nDCG@5"], official=True).notes


@pytest.mark.parametrize("root", [None, 5])
def test_a_track_that_is_no_path_is_an_error_that_says_so(root: object) -> None:
    with pytest.raises(TrecexamError, match=f"^a track is opened by its folder's path, not by {root}$"):
        trecexam.open_track(root)  # type: ignore[arg-type]


def test_a_grader_that_is_no_name_is_an_error_that_names_them(track: trecexam.Track) -> None:
    with pytest.raises(TrecexamError, match=r"track\[0\]: give a grader's name, one of rubric, "):
        track[0]  # type: ignore[index]


def test_the_best_run_is_an_attribute(track: trecexam.Track) -> None:
    board = track.leaderboard(["nDCG@10"])
    assert board.best.run == "dense-rerank"
    assert board.best.scores["nDCG@10"] == board.best.scores[0]
    with pytest.raises(KeyError, match=r"the leaderboard has no 'AP'; it has rubric:nDCG@10"):
        board.best.scores["AP"]


def test_agreement_has_kappa_and_accuracy_as_attributes(track: trecexam.Track) -> None:
    found = track.agreement()
    assert found.kappa == found.found[0].binary.kappa.value
    assert found.accuracy == found.found[0].accuracy


def test_a_track_has_name_queries_and_measures(track: trecexam.Track) -> None:
    assert track.name == "mytrack"
    assert next(iter(track.queries)) == "q01"
    assert "heat" in track.queries["q01"]
    assert set(track.measures) == set(track.leaderboard().measures)
    assert track["rubric"].measures == track["rubric"].leaderboard().measures


def test_status_of_a_grader_has_the_grading_counts(track: trecexam.Track) -> None:
    found = track["rubric"].status()
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


def test_a_plot_call_without_a_name_is_an_error_that_lists_the_plots(track: trecexam.Track) -> None:
    with pytest.raises(trecexam.TrecexamError, match=r"which plot\? There are leaderboard, .*scatter"):
        track.plot()


def test_printing_a_track_describes_it(track: trecexam.Track) -> None:
    shown = repr(track)
    assert shown.startswith("<Track 'mytrack': 7 runs, 8 queries; rubric has graded ")
    assert "of 2,9" in shown or "cells>" in shown


def test_a_track_that_cannot_be_read_can_be_printed(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    trecexam.make_demo_track(broken)
    with trecexam.open_track(broken) as track:
        for path in broken.glob("bank*"):
            path.write_text("{")
        assert "which cannot be read: " in repr(track) or "cannot grade" in repr(track)


def test_the_in_operator_finds_runs_columns_and_facts(track: trecexam.Track) -> None:
    board = track.leaderboard()
    assert "bm25" in board
    assert "nDCG@10" in board
    assert "bm26" not in board
    assert "bm25" in track["rubric"].leaderboard().table
    assert "kendall_tau" in track.correlate()
    assert "cells" in track["rubric"].status()
    assert "rubric" in track
    assert "umbrela" not in track
    assert list(track) == ["rubric", "support"]


def test_printing_a_group_of_calls_lists_them(track: trecexam.Track) -> None:
    assert repr(track.verify) == "<Verify of 'mytrack': grading, grid, missing, spurious>"


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


def test_wrong_arguments_for_a_track_or_runs_suggest_the_right_call(folder: Path) -> None:
    with pytest.raises(trecexam.TrecexamError, match=r"use trecexam.open_track\(\"mytrack\"\)"):
        trecexam.Track("mytrack")  # type: ignore[arg-type]
    with pytest.raises(
        trecexam.TrecexamError, match=r'one run, query_id -> doc_id -> score; give {"NAME": run}'
    ):
        trecexam.evaluate({"q01": {"canal-lock-01": 1.0}}, bank=folder / "bank.questions.jsonl")
