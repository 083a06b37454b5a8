from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import ROOT

from trecexam.cli.main import run

EXAMPLE = ROOT / "examples" / "ragval" / "judged.jsonl"
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


def test_json_has_full_precision_and_standard_errors(
    files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ragval", "report", *map(str, files), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    good, poor = found["report"]
    assert list(good) == HEADER.split("\t")
    assert good["truthfulness"] == pytest.approx(13 / 3, abs=1e-12)
    assert found["leaderboard"][0]["sum.stderr"] == pytest.approx(0.4410, abs=1e-4)
    assert poor["n_input_tokens"] is None


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


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["-o", "{good}"], "is an input"),
        (["{missing}"], "does not exist"),
        (["{folder}"], "is a directory"),
        (["{good}"], "good.jsonl: is given twice: its answers would count twice"),
    ],
)
def test_invalid_requests_are_a_one_line_error_with_status_2(
    files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], reason: str
) -> None:
    places = {"good": files[0], "missing": tmp_path / "missing.jsonl", "folder": tmp_path}
    assert run(["ragval", "report", *map(str, files), *(word.format(**places) for word in more)]) == 2
    assert reason in one_line(capsys)


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


def test_answers_that_could_not_be_judged_give_a_report_without_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(line("q1", None, None) + line("q2", 3, None))
    assert run(["ragval", "report", str(path)]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1] == "x\t2\t2\t\t\t\t\t"
    assert "x: no answer has scores, so there are no means" in shown.err


def test_the_page_shows_the_output_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "examples" / "ragval.md").read_text()
    shutil.copy(EXAMPLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    ((arguments, output),) = re.findall(
        r"```sh\ntrecexam (ragval report .*)\n```\n\n```text\n([^`]*)```", page
    )
    assert run(arguments.split()) == 0
    printed = [row.split("\t") for row in capsys.readouterr().out.splitlines()]
    shown = [row.split() for row in output.splitlines()]
    assert shown[0] == printed[0]
    assert [row[0] for row in shown] == [row[0] for row in printed]
    # The page shows what a terminal does: three digits.
    numbers = [[[float(cell) for cell in row[1:]] for row in rows[1:]] for rows in (shown, printed)]
    assert np.array(numbers[0]) == pytest.approx(np.array(numbers[1]), abs=0.005)
