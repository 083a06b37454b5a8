"""Qrels, official or of an LLM, as recorded grades: one grade per passage, on the scale of the labels."""

from __future__ import annotations

import csv
import html
import json
import random
from pathlib import Path

import ir_measures
import pytest
from support import all_notes, write_run

import trecexam
from trecexam.bank.model import QUERY
from trecexam.cli.main import run
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import Needs, read_inputs

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


def test_equal_texts_of_passages_or_queries_keep_separate_grades(
    tmp_path: Path, labels: Labels, runs: Path
) -> None:
    (tmp_path / "queries.tsv").write_text("".join(f"q{q}\tthe same\n" for q in range(4)))
    (tmp_path / "passages.jsonl").write_text(
        "".join(json.dumps({"docid": f"d{d:02}", "text": "alike"}) + "\n" for d in range(50))
    )
    path = write_qrels(tmp_path / "umbrela.qrels", labels)
    init(
        tmp_path / "track", "--recorded", path, "--runs", runs, "--queries", tmp_path / "queries.tsv",
        "--passages", tmp_path / "passages.jsonl",
    )  # fmt: skip
    with trecexam.open_track(tmp_path / "track") as track:
        assert {(row.query_id, row.doc_id): row.relevance for row in track.qrels()} == labels
        (page,) = [p for p in track.export.pool() if (p.query_id, p.doc_id) == ("q1", "d01")]
    assert page.text == "alike"


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


def test_agreement_of_llm_qrels_with_people_is_over_all_common_passages(
    tmp_path: Path, labels: Labels, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(8)
    people = {key: rng.choice((label, label, 0, 1, 2)) for key, label in labels.items() if rng.random() < 0.8}
    people["q0", "elsewhere"] = 2
    init(
        tmp_path / "track", "--recorded", write_qrels(tmp_path / "umbrela.qrels", labels),
        "--qrels", write_qrels(tmp_path / "people.qrels", people), "--runs", runs,
    )  # fmt: skip
    capsys.readouterr()
    assert run(["agreement", str(tmp_path / "track"), "--min-relevant", "2"]) == 0
    written = capsys.readouterr()
    assert "by construction" not in written.err
    both = [(labels[key] >= 2, people[key] >= 2) for key in labels.keys() & people.keys()]
    assert f"{len(both)} passages of 3 queries have a label and a judgment" in all_notes(
        capsys, "agreement", tmp_path / "track", "--min-relevant", "2"
    )
    po = sum(a == b for a, b in both) / len(both)
    yes = [sum(pair[side] for pair in both) / len(both) for side in (0, 1)]
    pe = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    rows = list(csv.DictReader(written.out.splitlines(), delimiter="\t"))
    (whole,) = [r for r in rows if (r["table"], r["label"], r["judgment"]) == ("binary", "all", "all")]
    assert whole["kappa"] == f"{(po - pe) / (1 - pe):.6f}"


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


def test_queries_without_a_label_are_not_said_to_be_missing_in_the_bank(
    tmp_path: Path, labels: Labels, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = [
        {"query_id": q, "query_text": q, "questions": [{"question_id": f"{q}/1", "question_text": "why?"}]}
        for q in ("q0", "q1", "q2", "q3")
    ]
    (tmp_path / "bank.jsonl").write_text("".join(json.dumps(line) + "\n" for line in bank))
    with (runs / "run0.run").open("a") as run0:
        run0.write("q7 Q0 d01 1 1 run0\n")
    write_run(runs / "none.run", {"q3": ["d01", "d02"]})
    path = write_qrels(tmp_path / "umbrela.qrels", labels)
    judged = write_qrels(tmp_path / "qrels.txt", {**labels, ("q3", "d01"): 1})
    files = ("--recorded", path, "--runs", runs, "--qrels", judged)
    init(tmp_path / "track", *files, "--bank", tmp_path / "bank.jsonl", status=1)
    said = capsys.readouterr().err
    outside = "not among the grader's queries, and were left out:"
    assert f"2 of its 5 queries are {outside} 'q3', 'q7'" in said
    assert f"of 2 others are {outside} 'q3'" in said
    assert "runs/none.run:1: none of its queries ('q3') is among the grader's queries ('q0', " in said
    said = all_notes(capsys, "correlate", tmp_path / "track")
    assert "; judged, and not among the grader's queries: 1" in said


def test_without_a_bank_queries_are_not_said_to_be_missing_in_it(small_track: Path) -> None:
    (small_track / "bank.questions.jsonl").unlink()
    (small_track / "trecexam.toml").write_text('[grader]\nname = "causal"\nprompt = "umbrela"\n')
    write_run(small_track / "runs" / "more.run", {"q1": ["q1-d00"], "q9": ["q1-d00"]})
    notes = read_inputs(TrackFolder.open(small_track), Needs(frozenset((QUERY,)))).dropped.notes
    assert notes == (
        "runs/more.run:2: 1 of its 2 queries are not among the grader's queries, and were left out: 'q9'",
    )


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
