"""Where nothing is graded, or nothing is judged of a run, nothing looks like a score."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import ir_measures
import pytest
from served import client_of
from support import HashGrader, make_small_track, printed

import trecexam
from trecexam.errors import TrecexamError

RUNS = ("run0", "run1", "run2")


@pytest.fixture
def ungraded(tmp_path: Path) -> Path:
    """A track whose recording has nothing of its pool."""
    root = make_small_track(
        tmp_path / "t",
        config='[track]\ndepth = 8\n[grader]\nname = "recorded"\nrecorded = "grades.jsonl"\n',
    )
    (root / "grades.jsonl").write_text('{"query_id": "q1", "doc_id": "d", "item_id": "i", "rating": 1}\n')
    return root


def test_no_output_has_a_score_or_a_rank_of_an_ungraded_track(ungraded: Path) -> None:
    with trecexam.open_track(ungraded) as track:
        track.update()
        board = track.leaderboard()
        values = track.per_query(library="pyarrow")["value"].to_pylist()
    assert board.ranks == (None, None, None)
    with pytest.raises(LookupError, match="no run of the leaderboard has a score"):
        _ = board.best
    assert all(math.isnan(value) for value in values)
    with client_of(ungraded) as client:
        page = client.get("/run/run1").text
    assert "Rank" not in page.partition("<main")[2]
    assert "0.0000" not in page
    out = ungraded / "out"
    rows = [line.split("\t") for line in (out / "leaderboard.tsv").read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == list(RUNS)
    assert {value for row in rows for value in row[1:]} == {""}
    per_query = [line.split("\t") for line in (out / "per_query.tsv").read_text().splitlines()[1:]]
    assert per_query
    assert {row[3] for row in per_query} == {""}
    for name in ("differences.tsv", "groups.tsv"):
        assert len((out / name).read_text().splitlines()) == 1
    scores = json.loads((out / "leaderboard.json").read_text())["runs"][0]["scores"]
    assert all(score == {"mean": None, "stderr": None} for score in scores.values())
    assert not (out / "correlation.tsv").exists()
    report = html.unescape((out / "report.html").read_text())
    assert "count as not relevant" not in report
    assert "0.000" not in report


@pytest.mark.parametrize(
    "words",
    [("compare",), ("correlate",), ("export", "leaderboard"), ("plot", "scatter")],
)
def test_questions_about_scores_of_an_ungraded_track_say_that_nothing_is_graded(
    ungraded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str]
) -> None:
    output = ("-o", tmp_path / "plot.svg") if words[0] == "plot" else ()
    found, err = printed(capsys, *words, ungraded, *output, status=2)
    assert found == ""
    assert f"nothing is graded yet; `trecexam watch {ungraded} --once` takes what grades.jsonl has" in err


def judge(root: Path, *lines: str) -> None:
    (root / "qrels.txt").write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    root = make_small_track(tmp_path / "g", config="[track]\ndepth = 3\n")
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
    return root


def deep(root: Path) -> dict[str, str]:
    """query_id -> a passage that `run0` has below the pool's depth, and no run above it."""
    by_query: dict[str, list[list[str]]] = {}
    for name in RUNS:
        of_run: dict[str, list[str]] = {}
        for line in (root / "runs" / f"{name}.run").read_text().splitlines():
            query_id, _, doc_id, *_ = line.split()
            of_run.setdefault(query_id, []).append(doc_id)
        for query_id, ranking in of_run.items():
            by_query.setdefault(query_id, []).append(ranking)
    found = {}
    for query_id, rankings in by_query.items():
        pooled = {doc_id for ranking in rankings for doc_id in ranking[:3]}
        found[query_id] = next(doc_id for doc_id in rankings[0] if doc_id not in pooled)
    return found


def test_judgments_below_the_depth_of_the_pool_count_on_the_official_leaderboard(graded: Path) -> None:
    judge(graded, *(f"{query_id} 0 {doc_id} 1" for query_id, doc_id in deep(graded).items()))
    with trecexam.open_track(graded, grader=HashGrader()) as track:
        board = track.leaderboard(["RR"], official=True)
        compared = track.correlate(["P@3"], ["RR"])
    qrels = list(ir_measures.read_trec_qrels(str(graded / "qrels.txt")))
    for row in board.rows:
        ranking = list(ir_measures.read_trec_run(str(graded / "runs" / f"{row.run}.run")))
        assert row.scores[0].mean == pytest.approx(
            ir_measures.calc_aggregate([ir_measures.RR], qrels, ranking)[ir_measures.RR]
        )
    assert board.best.scores[0].mean > 0
    assert not any("another form" in note for note in (*board.notes, *compared.notes))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("q1 0 x1 1", "q2 0 x2 1"), "no passage that it judges ('x1', 'x2') is in the pool"),
        (("q1 0 q2-d00 1", "q2 0 q1-d00 1"), "are query ids those of another file?"),
        (("q1 0 q1-d00 -1", "q1 0 q1-d01 -1"), "all its labels are -1: pooled, not judged"),
        (("q8 0 q1-d00 1",), "none of its 1 query ('q8') is among the track's"),
    ],
)  # fmt: skip
def test_judgments_of_nothing_that_a_run_has_give_no_official_score(
    graded: Path, capsys: pytest.CaptureFixture[str], lines: Sequence[str], reason: str
) -> None:
    judge(graded, *lines)
    found, err = printed(capsys, "leaderboard", graded, "--official", "-m", "nDCG@10")
    assert reason in err
    assert [line.split("\t")[1:] for line in found.splitlines()[1:]] == [["", ""]] * 3
    with (
        trecexam.open_track(graded, grader=HashGrader()) as track,
        pytest.raises(TrecexamError, match=re.escape(reason)),
    ):
        track.compare(official=True)
