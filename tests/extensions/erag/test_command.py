"""`trecexam erag` with given outputs: results, and errors in the inputs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from erag_track import GOLD, erag_track, outputs_file
from headings import score_columns
from text_files import put_rows

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.check.preflight import check_file
from trecexam.extensions.check.trec_eval_rules import takes

Capture = pytest.CaptureFixture[str]
EM = {("q1", "d1"): 1, ("q1", "d2"): 0, ("q2", "d3"): 1, ("q2", "d4"): 0, ("q2", "d6"): 0, ("q3", "d5"): 0}


@pytest.fixture
def track(tmp_path: Path) -> Path:
    """Without passages, a bank or a model."""
    return erag_track(tmp_path / "track")


def erag(track: Path, *more: str, gold: Path | None = None) -> int:
    words = ["erag", str(track), "--gold", str(gold or track / "gold.jsonl"), "-o", str(track / "got")]
    if "--outputs" not in more:
        words += ["--outputs", str(outputs_file(track / "outputs.jsonl"))]
    return run([*words, *more])


def rows(path: Path) -> list[list[str]]:
    _, *lines = path.read_text().splitlines()
    return [line.split("\t") for line in lines]


def test_labels_scores_and_qrels_are_written(track: Path, capsys: Capture) -> None:
    assert erag(track, "--metric", "em", "-m", "P@2", "-m", "Success@5", "-m", "AP", "-m", "nDCG@5") == 0
    got = track / "got"
    assert (got / "labels.tsv").read_text().startswith("query_id\tdoc_id\tlabel\n")
    assert {(q, d): int(label) for q, d, label in rows(got / "labels.tsv")} == EM
    assert (got / "labels.qrels").read_text().splitlines() == [
        f"{q} 0 {d} {label}" for (q, d), label in sorted(EM.items())
    ]
    for version in (9, 10):
        assert takes(check_file(got / "labels.qrels", "qrels").findings, version)
    values = {(name, measure, q): float(value) for name, measure, q, value in rows(got / "scores.tsv")}
    assert list(dict.fromkeys(measure for _, measure, _ in values)) == ["P@2", "Success@5", "AP", "nDCG@5"]
    assert values["one", "P@2", "q2"] == 0.5
    assert values["one", "AP", "q2"] == 0.5
    assert values["one", "nDCG@5", "q2"] == pytest.approx(1 / math.log2(3), abs=1e-6)
    assert values["two", "AP", "q1"] == 0.5
    # The run has nothing for q3, which counts as 0.
    assert values["two", "Success@5", "q3"] == 0
    assert values["two", "Success@5", "all"] == pytest.approx(2 / 3, abs=1e-6)
    out, err = capsys.readouterr()
    columns = [name for each in ("P@2", "Success@5", "AP", "nDCG@5") for name in (each, f"{each}.stderr")]
    assert score_columns(out.splitlines()[0].split("\t")) == columns
    assert [line.split("\t")[0] for line in out.splitlines()[1:]] == ["one", "two"]
    assert "6 labels by em (0 or 1), 3 queries" in err
    assert sorted(path.name for path in got.iterdir()) == ["labels.qrels", "labels.tsv", "scores.tsv"]


def test_fractional_labels_are_written_and_rounded_in_qrels(track: Path, capsys: Capture) -> None:
    erag(track, "--metric", "em")
    capsys.readouterr()
    needing = ["AP", "RR", "R@5", "P(rel=2)@3", "Judged@5"]
    names = [word for name in ("P@3", "Success@1", *needing) for word in ("-m", name)]
    assert erag(track, "--metric", "f1", *names, "--json") == 1
    assert json.loads(capsys.readouterr().out)["refused_measures"] == [
        f"{name} needs labels of 0 and 1, but some are fractions; use P, Success and nDCG" for name in needing
    ]
    got = track / "got"
    assert [row[2] for row in rows(got / "labels.tsv")] == [
        "1.000000", "0.000000", "1.000000", "0.000000", "0.000000", "0.800000",
    ]  # fmt: skip
    assert (got / "labels.graded.qrels").read_text().splitlines()[-1] == "q3 0 d5 4"
    assert not (got / "labels.qrels").exists()
    values = {tuple(row[:3]): float(row[3]) for row in rows(got / "scores.tsv")}
    assert values["one", "P@3", "q2"] == pytest.approx(1 / 3, abs=1e-6)
    assert values["one", "Success@1", "q3"] == 0.8
    assert {measure for _, measure, _ in values} == {"P@3", "Success@1"}
    # If no measure is given, measures that reject fractions are omitted without an error.
    assert erag(track, "--metric", "f1") == 0
    assert {row[1] for row in rows(got / "scores.tsv")} == {"P@10", "nDCG@10", "Success@10"}


def test_bad_outputs_are_reported_and_the_others_count(track: Path, capsys: Capture) -> None:
    outputs = put_rows(
        track / "o.jsonl",
        {"query_id": "q1", "doc_id": "d1", "output": "Paris"},
        {"query_id": "q1", "doc_id": "d1", "output": "Rome"},
        {"query_id": "q8", "doc_id": "d1", "output": "x"},
        {"query_id": "q1", "doc_id": "d99", "output": "x"},
        {"query_id": "q1", "doc_id": "d2"},
        {"query_id": "q1", "doc_id": "d2", "output": None},
        {"doc_id": "d2", "output": "x"},
        "{",
        {"query_id": "q2", "doc_id": "d4", "output": " "},
        {"query_id": "q8", "doc_id": "d2", "output": "x"},
    )
    assert erag(track, "--metric", "em", "--outputs", str(outputs)) == 1
    err = capsys.readouterr().err
    rejected = {int(line): reason for _, line, reason, _ in rows(track / "got" / "rejected.tsv")}
    assert "has an output already (line 1); the first one counts" in rejected[2]
    assert rejected[3] == rejected[10] == "query 'q8' has no gold outputs, or is not in the track"
    assert rejected[4] == "document 'd99' of query 'q1' is in no run"
    assert rejected[5].endswith("is missing")
    assert rejected[6].endswith("is not text")
    assert 'no "query_id"' in rejected[7]
    assert "not valid JSON" in rejected[8]
    assert sorted(rejected) == [2, 3, 4, 5, 6, 7, 8, 10]
    assert rows(track / "got" / "labels.tsv") == [["q1", "d1", "1"], ["q2", "d4", "0"]]
    assert rows(track / "got" / "unlabelled.tsv") == [
        [q, d, "missing", "no output in the file"]
        for q, d in (("q1", "d2"), ("q2", "d3"), ("q2", "d6"), ("q3", "d5"))
    ]
    assert (
        "4 documents without a label, counted as 0 (4: no output in the file), 'd2' of query 'q1' first"
        in err
    )


def test_gold_outputs_of_unknown_queries_and_bad_lines_are_skipped(track: Path, capsys: Capture) -> None:
    gold = put_rows(
        track / "g.jsonl",
        {"query_id": "q1", "outputs": GOLD["q1"]},
        {"query_id": "q9", "outputs": ["x"]},
        {"query_id": "q2", "outputs": []},
        {"query_id": "q1", "outputs": ["Rome"]},
    )
    assert erag(track, "-m", "Success@5", gold=gold) == 1
    assert {row[2] for row in rows(track / "got" / "scores.tsv")} == {"q1", "all"}
    err = capsys.readouterr().err
    assert "g.jsonl: 1 of its 2 queries not in the track, left out: 'q9' (lost: line)" in err
    assert "g.jsonl:3: query 'q2' has no gold outputs: left out" in err
    assert "g.jsonl:4: query 'q1' occurs twice (first on line 1); the first one counts" in err
    nothing = put_rows(track / "g.jsonl", {"query_id": "q9", "outputs": ["x"]})
    assert erag(track, gold=nothing) == 2
    assert (
        "no run to evaluate in runs (rejected: runs/one.run:1: none of its queries ('q1', 'q2', 'q3') is "
        "among the grader's queries ('q9')" in capsys.readouterr().err
    )
    assert erag(track, gold=put_rows(track / "g.jsonl", {"query_id": "q1", "outputs": []})) == 2
    assert "no gold outputs can be read: g.jsonl:1: query 'q1' has no gold outputs" in capsys.readouterr().err
    assert erag(track, gold=put_rows(track / "g.jsonl", {"query_id": "q1", "question": "who?"})) == 2
    assert (
        "g.jsonl: this grader asks about items of the kind gold, but the bank has none"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise KeyError('x')", "the metric raised KeyError: 'x'"),
        ("return 7", "the metric returned 7, not a number from 0 to 1"),
    ],
)
def test_outputs_on_which_a_metric_fails_have_no_label(
    track: Path, capsys: Capture, body: str, reason: str
) -> None:
    (track / "mine.py").write_text(
        f"def metric(output, gold):\n    if output == 'London':\n        {body}\n    return output in gold\n"
    )
    assert erag(track, "--metric", "mine:metric", "-m", "Success@5", "--trust-code") == 1
    assert rows(track / "got" / "unlabelled.tsv") == [["q1", "d2", "unparsed", reason]]
    assert ["q1", "d2"] not in [row[:2] for row in rows(track / "got" / "labels.tsv")]
    assert f"1 document without a label, counted as 0 (1: {reason})" in capsys.readouterr().err


def test_end_to_end_scores_are_correlated_per_query(track: Path, capsys: Capture) -> None:
    scores = track / "end.tsv"
    lines = ["run\tquery_id\tscore", "one\tq1\t1", "one\tq2\t0.4", "one\tq3\t0", "two\tq1\t1", "two\tq2\t1"]
    scores.write_text("\n".join(lines) + "\n")
    assert erag(track, "-m", "AP", "-m", "Success@1", "--end-to-end", str(scores)) == 0
    header = (track / "got" / "correlation.tsv").read_text().splitlines()[0]
    assert header == "run\tmeasure\tn_queries\tkendall_tau\tspearman_rho"
    assert rows(track / "got" / "correlation.tsv") == [
        ["one", "AP", "3", "1.000000", "1.000000"],
        ["one", "Success@1", "3", "0.816497", "0.866025"],
        ["two", "AP", "2", "", ""],
        ["two", "Success@1", "2", "", ""],
    ]
    scores.write_text(
        "\n".join([*lines, "one\tq1\t2", "x\tq1\t1", "one\tq9\t1", "one\tq3\tnan", "one"]) + "\n"
    )
    assert erag(track, "-m", "AP", "--end-to-end", str(scores)) == 1
    assert sorted(int(row[1]) for row in rows(track / "got" / "rejected.tsv")) == [7, 8, 9, 10, 11]


def test_json_and_python_give_the_same(track: Path, capsys: Capture) -> None:
    assert erag(track, "--metric", "em", "-m", "RR", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["binary"] is True
    with trecexam.open_track(track) as opened:
        found = opened.erag.score(
            track / "gold.jsonl", "em", measures=["RR"], outputs=track / "outputs.jsonl"
        )
    assert [(row["run"], row["RR"]) for row in said["runs"]] == [(row["run"], row["RR"]) for row in found]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--metric", "bleu"], "no metric 'bleu'; give em, f1, rouge-l, accuracy"),
        (["--metric", ""], "no metric ''"),
        (["--labels", "provenance"], "labels 'provenance' use no outputs: leave out metric and outputs"),
        (["-m", "ndcg@5"], "did you mean nDCG@"),
        (["-m", "Hit Rate@5"], "measure 'Hit Rate@5' cannot be read"),
        (["-o", "runs"], "runs: is in the drop folder, whose files are read as runs; name another folder"),
        (["-o", "out"], "is the folder of a track, or its out/; name another folder"),
    ],
)
def test_invalid_requests_are_a_one_line_error_and_write_nothing(
    track: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: list[str], reason: str
) -> None:
    monkeypatch.chdir(track)
    assert erag(track, *words) == 2
    err = capsys.readouterr().err
    assert reason in err
    assert err.count("\n") == 1
    assert not (track / "got").exists()


def test_without_gold_outputs_the_error_says_how_to_give_them(track: Path, capsys: Capture) -> None:
    outputs = str(outputs_file(track / "outputs.jsonl"))
    assert run(["erag", str(track), "--outputs", outputs, "-o", str(track / "got")]) == 2
    assert "no gold outputs: name their file with --gold" in capsys.readouterr().err
