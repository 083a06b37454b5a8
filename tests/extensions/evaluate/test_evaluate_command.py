"""`trecexam evaluate`: runs on a qrels file, without a track."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import ir_measures
import pytest
from support import write_run

import trecexam
from trecexam.cli.main import run

Table = list[dict[str, str]]


def table(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> Table:
    capsys.readouterr()
    assert run(["evaluate", *map(str, words)]) == status
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


def error(capsys: pytest.CaptureFixture[str], *words: object, status: int = 2) -> str:
    capsys.readouterr()
    assert run(["evaluate", *map(str, words)]) == status
    return capsys.readouterr().err


def runs_of(root: Path) -> list[Path]:
    return sorted((root / "runs").glob("*.run"))


def test_cover_of_the_subtopics_file_equals_that_of_the_track(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subtopics = graded / "out" / "rubric.subtopics.qrels"
    rows = table(capsys, subtopics, *runs_of(graded), "-m", "Cover(rel=1)@5", "-m", "nCover(rel=1)@5")
    with trecexam.open_track(graded) as track:
        board = track.leaderboard(["Cover(rel=4)@5", "nCover(rel=4)@5"])
    assert [row["run"] for row in rows] == [row.run for row in board.rows]
    for row, own in zip(rows, board.rows, strict=True):
        for at_1, score in zip(("Cover(rel=1)@5", "nCover(rel=1)@5"), own.scores, strict=True):
            assert float(row[at_1]) == pytest.approx(score.mean, abs=1e-4)
            assert float(row[f"{at_1}.stderr"]) == pytest.approx(score.stderr, abs=1e-4)


def test_other_measures_equal_those_of_the_leaderboard(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-m", "nDCG@10", "-m", "P(rel=4)@5", "-m", "Bpref(rel=4)"]
    rows = table(capsys, graded / "out" / "rubric.qrels", *runs_of(graded), *words)
    capsys.readouterr()
    assert run(["leaderboard", str(graded), *words]) == 0
    assert rows == [
        dict(zip(rows[0], line.split("\t"), strict=True)) for line in capsys.readouterr().out.splitlines()[1:]
    ]
    rows = table(capsys, graded / "out" / "rubric.subtopics.qrels", *runs_of(graded), "-m", "alpha_nDCG@20")
    with trecexam.open_track(graded) as track:
        board = track.leaderboard(["alpha_nDCG@20"])
    values = {row.run: row.scores[0].mean for row in board.rows}
    assert {row["run"]: float(row["alpha_nDCG@20"]) for row in rows} == pytest.approx(values, abs=1e-4)


def test_per_query_values_work_with_json_and_compressed_files(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    qrels, packed = tmp_path / "s.qrels.gz", tmp_path / "a.run.gz"
    qrels.write_bytes(gzip.compress((graded / "out" / "rubric.subtopics.qrels").read_bytes()))
    packed.write_bytes(gzip.compress((graded / "runs" / "run1.run").read_bytes()))
    rows = table(capsys, qrels, packed, "-m", "Cover(rel=1)@3", "--per-query")
    expected = {
        value.query_id: value.value
        for value in ir_measures.iter_calc(
            [ir_measures.parse_measure("Cover(rel=1)@3")],
            ir_measures.read_trec_qrels(str(qrels)),
            ir_measures.read_trec_run(str(packed)),
        )
    }
    assert [row["query_id"] for row in rows] == sorted(expected)
    assert {row["query_id"]: float(row["value"]) for row in rows} == pytest.approx(expected, abs=1e-4)
    capsys.readouterr()
    assert run(["evaluate", str(qrels), str(packed), "-m", "Cover(rel=1)@3", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["n_queries"] == 3
    (row,) = value["runs"]
    assert row["scores"]["Cover(rel=1)@3"]["mean"] == pytest.approx(sum(expected.values()) / 3)


def test_labels_without_items_have_no_cover_and_the_error_names_file_and_remedy(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, subtopics = graded / "out" / "rubric.qrels", graded / "out" / "rubric.subtopics.qrels"
    (line,) = error(capsys, labels, *runs_of(graded), "-m", "Cover(rel=4)@20").splitlines()
    assert str(labels) in line
    assert "rubric.subtopics.qrels" in line
    (line,) = error(capsys, subtopics, *runs_of(graded), "-m", "nDCG@10", "-m", "Cover@20").splitlines()
    assert "Cover(rel=1)@20" in line
    (line,) = error(capsys, labels, *runs_of(graded), "-m", "alpha_nDCG@20").splitlines()
    assert "needs subtopics" in line
    (line,) = error(capsys, labels, *runs_of(graded), "-m", "ndcg_cut_10").splitlines()
    assert "nDCG@10" in line
    assert "-m" in error(capsys, labels, *runs_of(graded))


def test_an_unreadable_run_does_not_stop_the_others(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.run"
    broken.write_text("q1 Q0 d 1\n")
    good = graded / "runs" / "run0.run"
    words = (graded / "out" / "rubric.qrels", broken, good, "-m", "nDCG@10")
    (row,) = table(capsys, *words, status=1)
    assert row["run"] == "run0"
    assert f"{broken}:1" in error(capsys, *words, status=1)
    assert f"{broken}:1" in error(capsys, words[0], broken, "-m", "nDCG@10")
    assert "missing" in error(capsys, tmp_path / "missing", good, "-m", "nDCG@10")


def test_skipped_queries_score_0_and_a_run_without_any_query_is_reported(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = [line.split()[2] for line in (graded / "runs" / "run0.run").read_text().splitlines()]
    one = write_run(tmp_path / "one.run", {"q1": docs[:5]})
    none = write_run(tmp_path / "none.run", {"Q1": docs[:5]})
    subtopics = graded / "out" / "rubric.subtopics.qrels"
    rows = table(capsys, subtopics, one, "-m", "Cover(rel=1)@5", "--per-query")
    assert [float(row["value"]) for row in rows][1:] == [0, 0]
    assert float(rows[0]["value"]) > 0
    assert "has none of its queries ('Q1')" in error(capsys, subtopics, none, one, "-m", "nDCG@10", status=0)


def test_runs_with_the_same_tag_are_named_by_their_files(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (graded / "runs" / "run0.run").read_text()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.run").write_text(text)
    rows = table(capsys, graded / "qrels.txt", tmp_path / "a" / "x.run", Path("b") / "x.run", "-m", "P@5")
    assert [row["run"] for row in rows] == ["a/x", "b/x"]
