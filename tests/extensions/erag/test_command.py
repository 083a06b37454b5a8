"""`trecexam erag` without a model: given outputs, eRAG's baselines, and errors in the inputs."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from erag_track import GOLD, RUNS, SAYS, erag_track, outputs_file
from headings import score_columns
from hypothesis import given
from hypothesis import strategies as st
from support import labels_of
from text_files import put_rows

import trecexam
from trecexam.cli.main import run
from trecexam.extensions.check.preflight import check_file
from trecexam.extensions.check.trec_eval_rules import takes
from trecexam.extensions.erag.metrics import contains_answer

Capture = pytest.CaptureFixture[str]
PAIRS = sorted({(q, d) for ranking in RUNS.values() for q, docs in ranking.items() for d in docs})
EM = {pair: int(pair in {("q1", "d1"), ("q2", "d3")}) for pair in PAIRS}


@pytest.fixture
def track(tmp_path: Path) -> Path:
    """Without a bank or a model; passages for the baseline, without d6."""
    root = erag_track(tmp_path / "track")
    texts = {**SAYS, "d4": "the bard, that is William-Shakespeare", "d2": "Parisian, of the paris-basin"}
    del texts["d6"]
    put_rows(root / "passages.jsonl", *({"docid": d, "text": f"It says: {texts[d]}"} for d in texts))
    return root


def erag(track: Path, *more: str, gold: Path | None = None) -> int:
    words = ["erag", str(track), "--gold", str(gold or track / "gold.jsonl"), "-o", str(track / "got")]
    if "--outputs" not in more and "--labels" not in more:
        words += ["--outputs", str(outputs_file(track / "outputs.jsonl"))]
    return run([*words, *more])


def rows(track: Path, name: str) -> list[list[str]]:
    _, *lines = (track / "got" / f"{name}.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines]


def labels(track: Path) -> dict[tuple[str, str], int]:
    return labels_of(track / "got" / "labels.qrels")


def test_labels_scores_and_qrels_are_written(track: Path, capsys: Capture) -> None:
    assert erag(track, "--metric", "em", "-m", "P@2", "-m", "Success@5", "-m", "AP", "-m", "nDCG@5") == 0
    got = track / "got"
    assert (got / "labels.tsv").read_text().startswith("query_id\tdoc_id\tlabel\n")
    assert labels(track) == EM
    assert {(q, d): int(label) for q, d, label in rows(track, "labels")} == EM
    for version in (9, 10):
        assert takes(check_file(got / "labels.qrels", "qrels").findings, version)
    values = {tuple(row[:3]): float(row[3]) for row in rows(track, "scores")}
    assert list(dict.fromkeys(measure for _, measure, _ in values)) == ["P@2", "Success@5", "AP", "nDCG@5"]
    assert values["one", "P@2", "q2"] == values["one", "AP", "q2"] == values["two", "AP", "q1"] == 0.5
    assert values["one", "nDCG@5", "q2"] == pytest.approx(1 / math.log2(3), abs=1e-6)
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
    names = ["P@3", "Success@1", *needing]
    assert erag(track, "--metric", "f1", "--json", *(word for name in names for word in ("-m", name))) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [note.split(" needs ")[0] for note in printed["notes"] if " needs labels of 0" in note] == needing
    assert printed["binary"] is False
    outputs = track / "outputs.jsonl"
    with trecexam.open_track(track) as opened:
        found = opened.erag.score(str(track / "gold.jsonl"), "f1", measures=names, outputs=outputs)
    assert [(row["run"], row["P@3"]) for row in printed["runs"]] == [
        (row["run"], row["P@3"]) for row in found
    ]
    assert [float(label) for _, _, label in rows(track, "labels")] == [1, 0, 1, 0, 0, 0.8]
    assert (track / "got" / "labels.graded.qrels").read_text().splitlines()[-1] == "q3 0 d5 4"
    assert not (track / "got" / "labels.qrels").exists()
    values = {tuple(row[:3]): float(row[3]) for row in rows(track, "scores")}
    assert values["one", "P@3", "q2"] == pytest.approx(1 / 3, abs=1e-6)
    assert values["one", "Success@1", "q3"] == 0.8
    assert {measure for _, measure, _ in values} == {"P@3", "Success@1"}
    # If no measure is given, measures that reject fractions are omitted without an error.
    assert erag(track, "--metric", "f1") == 0
    assert {row[1] for row in rows(track, "scores")} == {"P@10", "nDCG@10", "Success@10"}


def test_bad_outputs_are_reported_and_the_others_count(track: Path, capsys: Capture) -> None:
    bad = [
        ({"query_id": "q1", "doc_id": "d1", "output": "Rome"}, "has an output already; the first one counts"),
        ({"query_id": "q8", "doc_id": "d1", "output": "x"}, "query 'q8' has no gold outputs, or is not in"),
        ({"query_id": "q1", "doc_id": "d99", "output": "x"}, "document 'd99' of query 'q1' is in no run"),
        ({"query_id": "q1", "doc_id": "d2"}, "document 'd2' of query 'q1' has no text"),
        ({"query_id": "q1", "doc_id": "d2", "output": 1}, "document 'd2' of query 'q1' is not text"),
        ({"doc_id": "d2", "output": "x"}, 'no "query_id"'),
        ("{", "not valid JSON"),
    ]
    good = {"query_id": "q1", "doc_id": "d1", "output": "Paris"}
    empty = {"query_id": "q2", "doc_id": "d4", "output": " "}
    outputs = put_rows(track / "o.jsonl", good, empty, *(line for line, _ in bad))
    assert erag(track, "--metric", "em", "--outputs", str(outputs)) == 1
    rejected = {int(line): reason for _, line, reason, _ in rows(track, "rejected")}
    assert len(rejected) == len(bad)
    for number, (_, reason) in enumerate(bad, 3):
        assert reason in rejected[number]
    assert labels(track) == {("q1", "d1"): 1, ("q2", "d4"): 0}
    missing = [pair for pair in PAIRS if pair not in labels(track)]
    assert rows(track, "unlabelled") == [[*pair, "missing", "no output in the file"] for pair in missing]
    first = "counted as 0 (4: no output in the file), 'd2' of query 'q1' first"
    assert f"4 documents without a label, {first}" in capsys.readouterr().err


def test_gold_outputs_of_unknown_queries_and_bad_lines_are_skipped(track: Path, capsys: Capture) -> None:
    def score(*lines: tuple[str, list[str]]) -> tuple[int, str]:
        gold = ({"query_id": q, "outputs": outputs} for q, outputs in lines)
        status = erag(track, "-m", "Success@5", gold=put_rows(track / "g.jsonl", *gold))
        return status, capsys.readouterr().err

    status, err = score(("q1", GOLD["q1"]), ("q9", ["x"]), ("q2", []), ("q1", ["Rome"]))
    assert status == 1
    assert {row[2] for row in rows(track, "scores")} == {"q1", "all"}
    assert "g.jsonl: 1 of its 2 queries not in the track, left out: 'q9' (lost: line)" in err
    assert "g.jsonl:3: query 'q2' has no gold outputs: left out" in err
    assert "g.jsonl:4: query 'q1' occurs twice (first on line 1); the first one counts" in err
    status, err = score(("q9", ["x"]))
    assert status == 2
    assert "no run to evaluate in runs (rejected: runs/one.run:1: none of its queries ('q1', 'q2'," in err
    status, err = score(("q1", []))
    assert status == 2
    assert "no gold outputs can be read: g.jsonl:1: query 'q1' has no gold outputs" in err
    assert erag(track, gold=put_rows(track / "g.jsonl", {"query_id": "q1", "question": "who?"})) == 2
    assert "this grader asks about items of the kind gold, but the bank has none" in capsys.readouterr().err
    assert run(["erag", str(track), "--outputs", str(track / "outputs.jsonl")]) == 2
    assert "no gold outputs: name their file with --gold" in capsys.readouterr().err


def test_outputs_on_which_a_metric_fails_have_no_label(track: Path, capsys: Capture) -> None:
    lines = ["def metric(output, gold):", "    return 7 if output == 'London' else 1 / len(output)"]
    (track / "mine.py").write_text("\n".join(lines) + "\n")
    assert erag(track, "--metric", "mine:metric", "-m", "Success@5", "--trust-code") == 1
    reasons = {
        ("q1", "d2"): "the metric returned 7, not a number from 0 to 1",
        ("q2", "d6"): "the metric raised ZeroDivisionError: division by zero",
    }
    assert rows(track, "unlabelled") == [[*pair, "unparsed", why] for pair, why in reasons.items()]
    assert [(q, d) for q, d, _ in rows(track, "labels")] == [pair for pair in PAIRS if pair not in reasons]
    err = capsys.readouterr().err
    assert "2 documents without a label, counted as 0 (" in err
    assert all(f"1: {why}" in err for why in reasons.values())


def test_end_to_end_scores_are_correlated_per_query(track: Path) -> None:
    scores = track / "end.tsv"
    lines = ["run\tquery_id\tscore", "one\tq1\t1", "one\tq2\t0.4", "one\tq3\t0", "two\tq1\t1", "two\tq2\t1"]
    scores.write_text("\n".join(lines) + "\n")
    assert erag(track, "-m", "AP", "-m", "Success@1", "--end-to-end", str(scores)) == 0
    header = (track / "got" / "correlation.tsv").read_text().splitlines()[0]
    assert header == "run\tmeasure\tn_queries\tkendall_tau\tspearman_rho"
    assert rows(track, "correlation") == [
        ["one", "AP", "3", "1.000000", "1.000000"],
        ["one", "Success@1", "3", "0.816497", "0.866025"],
        ["two", "AP", "2", "", ""],
        ["two", "Success@1", "2", "", ""],
    ]
    bad = ["one\tq1\t2", "x\tq1\t1", "one\tq9\t1", "one\tq3\tnan", "one"]
    scores.write_text("\n".join([*lines, *bad]) + "\n")
    assert erag(track, "-m", "AP", "--end-to-end", str(scores)) == 1
    assert sorted(int(row[1]) for row in rows(track, "rejected")) == [7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--metric", "bleu"], "no metric 'bleu'; give em, f1, rouge-l, accuracy"),
        (["--metric", ""], "no metric ''"),
        (["--labels", "provenance", "--metric", "em"], "use no outputs: leave out metric and outputs"),
        (["--labels", "provenance"], "no provenance: put qrels.txt into the track, or give a KILT file"),
        (["-m", "ndcg@5"], "did you mean nDCG@"),
        (["-m", "Cover@5"], "needs a test bank's items, and a document's label is one number"),
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


def test_a_document_that_contains_a_gold_answer_has_label_1(track: Path, capsys: Capture) -> None:
    assert erag(track, "--labels", "contains-answer", "-m", "P@2", "-m", "AP") == 0
    # "williamshakespeare" and "parisbasin" are one word each; a document without a text has no label.
    assert labels(track) == {pair: EM[pair] for pair in PAIRS if pair[1] != "d6"}
    printed = capsys.readouterr()
    assert "5 labels by contains-answer (0 or 1), 3 queries" in printed.err
    assert "1 document without a label, counted as 0 (1: the document has no text)" in printed.err
    assert printed.out.splitlines()[1].startswith("one\t3\t")


plain = st.text(alphabet="ab cd.the-", max_size=12)


@given(plain, st.lists(plain, min_size=1, max_size=3))
def test_containment_compares_whole_words_normalised_as_in_em(text: str, gold: list[str]) -> None:
    own, *wanted = (
        re.sub(r"\b(a|an|the)\b", " ", re.sub(r"[.-]", "", each)).split() for each in (text, *gold)
    )
    found = any(each and any(own[at : at + len(each)] == each for at in range(len(own))) for each in wanted)
    assert contains_answer(text, gold) == found


def test_provenance_uses_the_qrels_of_the_track_and_counts_documents_no_run_found(track: Path) -> None:
    (track / "qrels.txt").write_text("q1 0 d2 2\nq1 0 d1 0\nq2 0 d3 1\nq2 0 d9 1\nq2 0 d4 -1\nq9 0 d1 1\n")
    assert erag(track, "--labels", "provenance", "-m", "R@5", "-m", "RR") == 0
    ones = {("q1", "d2"), ("q2", "d3"), ("q2", "d9")}
    assert labels(track) == {pair: int(pair in ones) for pair in ones.union(PAIRS)}
    values = {tuple(row[:3]): float(row[3]) for row in rows(track, "scores")}
    # q2 has one of its two found, q1 has one found, q3 has none.
    assert values["two", "R@5", "all"] == pytest.approx((1 + 1 / 2 + 0) / 3, abs=1e-6)
    assert values["two", "RR", "all"] == pytest.approx((1 + 1 + 0) / 3, abs=1e-6)


def test_a_run_without_a_judged_document_is_reported_with_provenance(track: Path, capsys: Capture) -> None:
    def note(qrels: str) -> list[str]:
        (track / "qrels.txt").write_text(qrels)
        assert erag(track, "--labels", "provenance", "-m", "P@1") == 0
        return [line for line in capsys.readouterr().err.splitlines() if "is judged" in line]

    assert note("q1 0 d1 0\nq2 0 d4 1\n") == []
    two = "two: none of its passages is judged, so its values are 0"
    assert note("q1 0 d1 -1\nq1 0 d2 -1\nq2 0 d4 1\n") == [f"{two}; leave it out to compare the others"]
    (track / "runs" / "one.run").unlink()
    assert note("q1 0 d1 -1\nq1 0 d2 -1\nq2 0 d4 1\n") == [two]


def test_without_qrels_provenance_uses_the_gold_outputs_of_kilt(track: Path) -> None:
    def line(query_id: str, page: str | int) -> dict[str, object]:
        found = [{"wikipedia_id": page}]
        outputs = [{"answer": each, "provenance": found} for each in GOLD[query_id]]
        return {"id": query_id, "input": "what", "output": outputs}

    lines = line("q1", "d1"), line("q2", "d6"), line("q3", 5)
    kilt = put_rows(track / "kilt.jsonl", *lines, "{")
    assert erag(track, "--labels", "provenance", "-m", "P@1", gold=kilt) == 1
    relevant = [pair for pair, label in labels(track).items() if label]
    assert relevant == [("q1", "d1"), ("q2", "d6"), ("q3", "5")]
