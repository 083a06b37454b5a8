from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from trecexam.cli.main import run

HEADER = "run_id\tn\tunparsed\ttruthfulness\trelevance\tsum\tn_input_tokens\tn_output_tokens"


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
