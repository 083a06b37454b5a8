"""Tracks whose grader is `ragval`, as a user runs them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from ragval import answer, judging, make_track, questions
from scripted_server import serving
from text_files import put_rows

import trecexam
from trecexam.cli.main import run

pytest.importorskip("httpx2")


HEADER = "run_id\tn\tunparsed\ttruthfulness\trelevance\tsum\tn_input_tokens\tn_output_tokens"
NOWHERE = "http://127.0.0.1:9/v1"


def table(root: Path) -> list[list[str]]:
    lines = (root / "out" / "ragval" / "report.tsv").read_text().splitlines()
    assert lines[0] == HEADER
    return [line.split("\t") for line in lines[1:]]


def notes(root: Path) -> tuple[str, ...]:
    with trecexam.open_track(root) as track:
        noted: tuple[str, ...] = track.ragval.report().notes
    return noted


def rejected(root: Path) -> list[list[str]]:
    return [line.split("\t") for line in (root / "out" / "rejected.tsv").read_text().splitlines()[1:]]


def test_dropped_answers_are_judged_once_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(judging) as server:
        root = make_track(tmp_path / "track", server.url, price_in=1.0, price_out=2.0)
        put_rows(
            root / "runs" / "good.jsonl",
            answer("k1", 5, 4, n_input_tokens=10, n_output_tokens=2),
            answer("k2", 4.5, 5),
            answer("k3", 5, 5),
        )
        put_rows(
            root / "runs" / "other.jsonl",
            answer("k1", 1, 2, run_id="fair"),
            answer("k2", 3, 2, run_id="fair"),
        )
        assert run(["watch", str(root), "--estimate"]) == 0
        header, row = capsys.readouterr().out.splitlines()
        assert header.startswith("cells\ttokens_in")
        assert row.startswith("10\t")
        assert row.split("\t")[-2] == "5"
        assert not server.bodies
        assert run(["watch", str(root), "--once"]) == 0
        assert len(server.bodies) == 5
        assert table(root) == [
            ["good", "3", "0", "4.8333", "4.6667", "9.5000", "10", "2"],
            ["fair", "2", "0", "2.0000", "2.0000", "4.0000", "", ""],
        ]
        # A second update sends no prompt and changes no byte.
        before = {path: path.read_bytes() for path in (root / "out").rglob("*") if path.is_file()}
        assert run(["watch", str(root), "--once"]) == 0
        assert {path: path.read_bytes() for path in (root / "out").rglob("*") if path.is_file()} == before
        assert len(server.bodies) == 5
    rows = [json.loads(line) for line in (root / "out/ragval/judged.jsonl").read_text().splitlines()]
    assert rows[3] | {"answer": ""} == {
        "question_id": "k2/1",
        "answer": "",
        "run_id": "good",
        "question": "What of k2?",
        "n_input_tokens": None,
        "n_output_tokens": None,
        "truthfulness": 4.5,
        "relevance": 5.0,
        "status": "ok",
    }
    # An answer's label is the lower of its two scores, rounded down.
    labels = dict(
        line.split(" 0 ")[1].split() for line in (root / "out/rubric.qrels").read_text().splitlines()
    )
    assert labels == {
        "good/k1%2F1": "4",
        "good/k2%2F1": "4",
        "good/k3%2F1": "5",
        "fair/k1%2F1": "1",
        "fair/k2%2F1": "2",
    }
    board = (root / "out/leaderboard.tsv").read_text().splitlines()
    assert board[0].startswith("run\tqueries\tP(rel=4)@1\t")
    assert board[1].startswith("good\t3\t1.000000\t")
    capsys.readouterr()
    assert run(["ragval", "report", str(root / "out/ragval/judged.jsonl")]) == 0
    assert capsys.readouterr().out == (root / "out/ragval/report.tsv").read_text()


def test_lines_that_cannot_be_judged_are_reported_and_the_rest_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(judging) as server:
        root = make_track(tmp_path / "track", server.url)
        put_rows(
            root / "runs" / "sys.jsonl",
            answer("k1", 5, 5),
            answer("k9", 5, 5),
            answer("k1", 1, 1),
            "{not JSON",
            {"question_id": "k2/1", "answer": "  "},
            {"question_id": "k3/1", "answer": "No scores."},
            {"answer": "To what?"},
            {"question_id": "k2/1", "answer": 7},
        )
        put_rows(root / "runs" / "lost.jsonl", answer("k8", 5, 5), answer("k9", 5, 5))
        assert run(["watch", str(root), "--once"]) == 1
        assert len(server.bodies) == 2
    assert notes(root)[0] == "1 empty answer: not judged, and counted as unparsed"
    assert table(root) == [["sys", "3", "2", "5.0000", "5.0000", "10.0000", "", ""]]
    found = [(file, line, reason[:40]) for file, line, reason, _ in rejected(root)]
    assert [(file, line) for file, line, _ in found] == [
        ("runs/lost.jsonl", "1"),
        ("runs/lost.jsonl", "2"),
        *(("runs/sys.jsonl", str(line)) for line in (2, 3, 4, 5, 7, 8)),
    ]
    reasons = {int(line): reason for file, line, reason, _ in rejected(root) if file == "runs/sys.jsonl"}
    assert "no question 'k9/1' in the bank" in reasons[2]
    assert "k1/1" in reasons[3]
    assert "counts" in reasons[3]
    assert "not valid JSON" in reasons[4]
    assert "is empty: it is not judged and counts as unparsed" in reasons[5]
    assert "question_id" in reasons[7]
    assert "not text" in reasons[8]


def test_answers_without_ids_are_matched_by_the_text_of_their_question(tmp_path: Path) -> None:
    with serving(judging) as server:
        root = make_track(tmp_path / "track", server.url)
        rows = [{**row, "answer": f"So [{n} {n}]."} for n, row in enumerate(questions(), 2)]
        for row in rows:
            del row["question_id"]
        put_rows(root / "runs" / "a.jsonl", *rows, {"question": "And what else?", "answer": "x"}, rows[0])
        assert run(["watch", str(root), "--once"]) == 1
    assert table(root) == [["a", "3", "0", "3.0000", "3.0000", "6.0000", "", ""]]
    assert [(line, "no question of this track" in reason) for _, line, reason, _ in rejected(root)] == [
        ("4", True),
        ("5", True),
    ]


def test_a_rating_by_a_person_replaces_that_of_the_judge(tmp_path: Path) -> None:
    with serving(judging) as server:
        root = make_track(tmp_path / "track", server.url)
        put_rows(root / "runs" / "a.jsonl", answer("k1", 4.5, 3))
        assert run(["watch", str(root), "--once"]) == 0
        by = ["--doc", "a/k1%2F1", "--who", "me", "--why", "so"]
        # A 0, which is not on the judge's scale, counts as its lowest score.
        for item, rating, shown in (
            ("k1/1/relevance", "5", ["4.5000", "5.0000", "9.5000"]),
            ("k1/1/truthfulness", "0", ["1.0000", "5.0000", "6.0000"]),
        ):
            words = ["--item", item, "--rating", rating, *by]
            assert run(["override", str(root), "--query", "k1/1", *words]) == 0
            assert run(["watch", str(root), "--once"]) == 0
            assert table(root) == [["a", "1", "0", *shown, "", ""]]


def test_files_of_several_systems_or_other_formats_are_rejected(tmp_path: Path) -> None:
    root = make_track(tmp_path / "track", NOWHERE)
    rows: list[Any] = [answer("k1", 5, 5, run_id="a"), answer("k1", 5, 5, run_id="b")]
    put_rows(root / "runs" / "two.jsonl", *rows)
    (root / "runs" / "passages.run").write_text("k1/1 Q0 d1 1 2.0 trec\n")
    put_rows(root / "runs" / "none.jsonl", {"hello": "world"})
    (root / "runs" / "empty.jsonl").write_text("")
    assert run(["watch", str(root), "--once"]) == 1
    reasons = {file: reason for file, _, reason, _ in rejected(root)}
    assert len(rejected(root)) == 4
    assert "2 runs" in reasons["runs/two.jsonl"]
    assert "a run of passages, but this track's judge scores answers" in reasons["runs/passages.run"]
    assert "no" in reasons["runs/none.jsonl"]
    assert "empty" in reasons["runs/empty.jsonl"]


def test_judging_stops_at_a_budget_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(judging) as server:
        root = make_track(
            tmp_path / "track", server.url, budget_tokens=1200, max_new_tokens=200, concurrency=1
        )
        put_rows(root / "runs" / "a.jsonl", *(answer(key, 4, 4) for key in ("k1", "k2", "k3")))
        settings = (root / "trecexam.toml").read_text()
        (root / "trecexam.toml").write_text(settings.replace("1200", "540"))
        assert run(["watch", str(root), "--once"]) == 1
        asked = len(server.bodies)
        assert 0 < asked < 3
        assert "`budget_tokens` = 540" in capsys.readouterr().err
        assert notes(root)[0].startswith(f"{3 - asked} answer")
        assert "not judged yet, and not in the report" in notes(root)[0]
        (root / "trecexam.toml").write_text(settings.replace("1200", "90000"))
        assert run(["watch", str(root), "--once"]) == 0
        assert len(server.bodies) == 3
    assert table(root)[0][:3] == ["a", "3", "0"]


def line(question: str, t: Any, r: Any, **more: Any) -> str:
    return (
        json.dumps({"question_id": question, "answer": "a", "truthfulness": t, "relevance": r, **more}) + "\n"
    )


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """good.jsonl, and poor.jsonl.gz whose second line was not parsed."""
    good, poor = tmp_path / "good.jsonl", tmp_path / "poor.jsonl.gz"
    good.write_text(
        line("q1", 5, 4.5, n_input_tokens=10, n_output_tokens=2)
        + line("q2", 4, 5, n_input_tokens=11)
        + line("q3", 4, 4, n_input_tokens=12)
    )
    poor.write_bytes(
        gzip.compress(
            (line("q1", 1, 2) + line("q2", None, None, status="unparsed") + line("q3", 2.5, 1)).encode()
        )
    )
    return [good, poor]


def test_report_prints_the_documented_columns_with_the_best_system_first(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ragval", "report", *map(str, reversed(files))]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        HEADER,
        "good\t3\t0\t4.3333\t4.5000\t8.8333\t33\t2",
        "poor\t3\t1\t1.7500\t1.5000\t3.2500\t\t",
    ]
    assert (
        shown.err
        == "good: 2 of 3 answers do not give their output tokens; the total covers the other answers\n"
    )


def test_bad_lines_are_listed_and_counted_and_the_rest_is_reported(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with files[0].open("a") as file:
        file.write(line("q1", 3, 3) + line("q4", 6, 3) + '{"question_id": "q5", "truthf')
    assert run(["ragval", "report", *map(str, files)]) == 1
    shown = capsys.readouterr()
    assert "good\t4\t1\t4.3333" in shown.out
    said = shown.err.splitlines()
    assert said[0].startswith(f"rejected: {files[0]}:4: question 'q1' has two answers of run 'good'")
    assert said[1].startswith(f'rejected: {files[0]}:5: "truthfulness" is 6: give a number from 1 to 5')
    assert said[2].startswith(f"rejected: {files[0]}:6: not valid JSON")


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    shown = capsys.readouterr()
    assert shown.out == ""
    (said,) = shown.err.splitlines()
    assert said.startswith("trecexam: ")
    return said


def test_files_without_usable_lines_give_status_2_with_the_first_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("[4, 5]\n{\n")
    assert run(["ragval", "report", str(path)]) == 2
    said = one_line(capsys)
    assert f"the first of 2 errors: {path}:1: not a JSON object" in said
    path.write_text("")
    assert run(["ragval", "report", str(path)]) == 2
    assert "the file is empty" in one_line(capsys)
