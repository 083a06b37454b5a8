"""Qrels, official or of an LLM, as recorded grades: one grade per passage, on the scale of the labels."""

from __future__ import annotations

import csv
import html
import random
from pathlib import Path

import ir_measures
import pytest
from support import all_notes, write_run

import trecexam
from trecexam.cli.main import run

Labels = dict[tuple[str, str], int]
MEASURES = ["nDCG@10", "AP(rel=2)", "P(rel=2)@5", "RR", "R(rel=2)@10"]


def write_qrels(path: Path, labels: Labels) -> Path:
    path.write_text("".join(f"{q} 0 {d} {label}\n" for (q, d), label in labels.items()))
    return path


def init(root: Path, *arguments: object, status: int = 0) -> None:
    """Makes and updates a track; 1 if some of its files are rejected."""
    assert run(["init", str(root), *map(str, arguments)]) == 0
    assert run(["watch", str(root), "--once"]) == status


def test_passages_without_a_label_are_reported_with_results_but_not_at_every_update(
    tmp_path: Path, labels: Labels, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "track"
    init(root, "--recorded", write_qrels(tmp_path / "umbrela.qrels", labels), "--runs", runs)
    write_run(root / "runs" / "more.run", {"q1": ["d01", "d07", "d49"]})
    assert run(["watch", str(root), "--once"]) == 0
    said = capsys.readouterr().err
    assert "rejected" not in said
    assert "not relevant" not in said
    assert (root / "out" / "rejected.tsv").read_text().count("\n") == 1
    pooled = {
        (q, d)
        for path in (root / "runs").iterdir()
        for q, _, d, rank, *_ in map(str.split, path.read_text().splitlines())
        if int(rank) <= 20 and q != "q3"
    }
    lacking = len(pooled - labels.keys())
    assert run(["leaderboard", str(root)]) == 0
    # Labelled passages are pooled, too, whichever run ranks them.
    note = f"{lacking} of {len(pooled | labels.keys())} pooled passages have no label in umbrela.qrels"
    assert capsys.readouterr().err.count(note) == 1
    assert note[1:] in html.unescape((root / "out" / "report.html").read_text())


@pytest.fixture
def labels() -> Labels:
    """Labels 0..3 of some documents of three queries; some not in the runs, and not all of the runs."""
    rng = random.Random(5)
    return {(f"q{q}", f"d{d:02}"): rng.choice((0, 0, 1, 2, 3)) for q in range(3) for d in range(40) if d % 7}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Four runs of 30 documents per query; one lacks a query, and one has an unjudged query."""
    rng = random.Random(6)
    for number in range(4):
        ranking = {f"q{q}": rng.sample([f"d{d:02}" for d in range(50)], 30) for q in range(number // 3, 4)}
        write_run(tmp_path / "runs" / f"run{number}.run", ranking)
    return tmp_path / "runs"


def test_a_leaderboard_of_qrels_equals_trec_eval_without_texts_bank_or_queries(
    tmp_path: Path, labels: Labels, runs: Path
) -> None:
    path = write_qrels(tmp_path / "umbrela.qrels", labels)
    init(tmp_path / "track", "--recorded", path, "--runs", runs)
    with trecexam.open_track(tmp_path / "track") as track:
        board = track.leaderboard(MEASURES)
    measures = [ir_measures.parse_measure(name) for name in MEASURES]
    judged = {q for q, _ in labels}
    for row in board.rows:
        values = list(
            ir_measures.iter_calc(
                measures,
                list(ir_measures.read_trec_qrels(str(path))),
                list(ir_measures.read_trec_run(str(runs / f"{row.run}.run"))),
            )
        )
        # trec_eval -c: over all judged queries.
        means = [sum(v.value for v in values if v.measure == m) / len(judged) for m in measures]
        assert [score.mean for score in row.scores] == pytest.approx(means, abs=1e-12)
    assert len(board.rows) == 4


@pytest.mark.parametrize(("best", "counts_from"), [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4)])
def test_the_scale_is_that_of_the_labels(
    tmp_path: Path, runs: Path, best: int, counts_from: int, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = {("q0", f"d{d:02}"): d % (best + 1) for d in range(20)}
    recorded = write_qrels(tmp_path / "x.qrels", labels)
    init(tmp_path / "track", "--recorded", recorded, "--runs", runs, status=1)
    with trecexam.open_track(tmp_path / "track") as track:
        assert track.grading.thresholds() == tuple(range(1, best + 1))
    capsys.readouterr()
    assert run(["leaderboard", str(tmp_path / "track")]) == 0
    expected = "P@20" if counts_from == 1 else f"P(rel={counts_from})@20"
    assert capsys.readouterr().out.split("\t")[1] == expected


def test_minus_1_is_no_grade_and_the_best_subtopic_label_counts(tmp_path: Path, runs: Path) -> None:
    path = tmp_path / "x.qrels"
    path.write_text("q0 1 d01 0\nq0 2 d01 2\nq0 3 d01 1\nq0 1 d02 -2\nq0 1 d03 1\nq0 1 d04 -1\n")
    init(tmp_path / "track", "--recorded", path, "--runs", runs, status=1)
    with trecexam.open_track(tmp_path / "track") as track:
        assert {row.doc_id: row.relevance for row in track.qrels()} == {"d01": 2, "d02": 0, "d03": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "q0 0 d01 7\n",
            "label 7 of passage 'd01' for query 'q0': qrels that are grades have labels of 0..5",
        ),
        ("q0 0 d01 -1\n", "holds no judgments: all labels are -1: pooled, not judged"),
        ("q0 0 d01 1\nq0 0 d02 one\n", "x.qrels:2: the label (column 4) is not a whole number: 'one'"),
    ],
)
def test_qrels_without_usable_grades_are_a_one_line_error(
    tmp_path: Path, runs: Path, text: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.qrels").write_text(text)
    root = str(tmp_path / "track")
    assert run(["init", root, "--recorded", str(tmp_path / "x.qrels"), "--runs", str(runs)]) == 0
    capsys.readouterr()
    assert run(["watch", root, "--once"]) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert len(err.splitlines()) == 1


def test_official_qrels_may_be_grades_and_are_not_read_as_judgments_too(
    tmp_path: Path, labels: Labels, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_qrels(tmp_path / "qrels.txt", labels)
    init(tmp_path / "alone", "--recorded", path, "--runs", runs)
    with trecexam.open_track(tmp_path / "alone") as track:
        assert track.status()["official_judgments"] == 0
    init(tmp_path / "both", "--recorded", path, "--qrels", path, "--runs", runs)
    capsys.readouterr()
    assert run(["correlate", str(tmp_path / "both"), "-m", "nDCG@10", "--official-measure", "nDCG@10"]) == 0
    (row,) = csv.DictReader(capsys.readouterr().out.splitlines(), delimiter="\t")
    assert row["kendall_tau"] == "1.000000"
    said = all_notes(capsys, "agreement", tmp_path / "both")
    assert "the labels are the official judgments: agreement is 1 by construction" in said


def test_a_person_can_override_a_label_of_qrels(tmp_path: Path, labels: Labels, runs: Path) -> None:
    root = tmp_path / "track"
    (tmp_path / "passages.jsonl").write_text('{"docid": "d01", "text": "something"}\n')
    path = write_qrels(tmp_path / "umbrela.qrels", labels | {("q1", "d01"): 0})
    init(root, "--recorded", path, "--runs", runs, "--passages", tmp_path / "passages.jsonl")
    with trecexam.open_track(root) as track:
        track.override("q1", "d01", 3, who="ann", why="it says so")
        track.update()
        assert track.override.ratings().rejected == ()
        assert {(r.query_id, r.doc_id): r.relevance for r in track.qrels()}["q1", "d01"] == 3


def test_a_measure_with_a_threshold_above_the_scale_is_reported_as_zero(
    tmp_path: Path, labels: Labels, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "track"
    init(root, "--recorded", write_qrels(tmp_path / "umbrela.qrels", labels), "--runs", runs)
    capsys.readouterr()
    said = "the grader rates 0..3, so all runs have 0 in Cover(rel=4)@5, P(rel=4)@5"
    assert run(["leaderboard", str(root), "-m", "Cover@5", "-m", "P(rel=4)@5", "-m", "nDCG@5"]) == 0
    assert said in capsys.readouterr().err
    assert run(["leaderboard", str(root), "-m", "Cover(rel=3)@5", "-m", "P@5", "-m", "alpha_nDCG@5"]) == 0
    assert "all runs have 0" not in capsys.readouterr().err
