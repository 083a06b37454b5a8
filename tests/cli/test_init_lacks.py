"""Warnings of `init`: files given under the wrong option, and inputs that the grader will need."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from trecexam.cli.main import run

FILES = {
    "queries.tsv": "q1\tcats at night\nq2\tdogs by day\n",
    "bank.jsonl": '{"query_id": "q1", "question": "what do cats do?"}\n'
    '{"query_id": "q2", "question": "and dogs?"}\n',
    "passages.jsonl": '{"docid": "d1", "text": "cats sleep"}\n',
    "qrels.txt": "q1 0 d1 1\n",
    "a.run": "q1 Q0 d1 1 2.0 a\nq1 Q0 d2 2 1.0 a\n",
    "said.jsonl": '{"metadata": {"team_id": "t", "run_id": "a", "topic_id": "q1"}, "references": [], '
    '"answer": [{"text": "Cats sleep.", "citations": []}]}\n',
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def warnings(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert run(["init", "track", *words]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("next: ")
    return [line for line in lines if line.startswith("warning: ")]


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        (["--bank", "bank.jsonl", "--passages", "passages.jsonl", "--runs", "a.run"], []),
        (["--bank", "bank.jsonl", "--runs", "a.run"], ["track: no passages: put passages.jsonl here"]),
        (["--bank", "bank.jsonl", "--runs", "said.jsonl"], []),
        (["--queries", "queries.tsv", "--passages", "passages.jsonl"], ["track: no test bank: put bank."]),
        (["--bank", "bank.jsonl", "--dataset", "vaswani"], []),
        ([], ["track: no test bank", "track: no passages"]),
    ],
)
def test_missing_inputs_of_the_grader_are_a_warning_with_a_remedy(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], lacks: list[str]
) -> None:
    found = warnings(capsys, *words)
    assert len(found) == len(lacks), found
    for line, start in zip(found, lacks, strict=True):
        assert line.startswith(f"warning: {start}")


@pytest.mark.parametrize(
    ("option", "file", "what", "target"),
    [
        ("queries", "queries.tsv", "the file is empty; put queries into", "queries.tsv"),
        ("queries", "queries.json", "no queries in it; put queries into", "queries.json"),
        ("passages", "passages.jsonl", "the file is empty; put passages into", "passages.jsonl"),
        ("bank", "mine.jsonl", "the file is empty; put questions or nuggets into", "bank.mine.jsonl"),
        ("qrels", "qrels.txt", "no judgments: the file is empty; put judgments into", "qrels.txt"),
        ("recorded", "grades.jsonl", "the file is empty; put grades into", "grades.jsonl"),
        ("runs", "a.run", "the file is empty; put a run or responses into", "runs/a.run"),
        ("runs", "folder", "the file is empty; put a run or responses into", "runs/b.run.gz"),
    ],
)
@pytest.mark.parametrize("content", [b"", b" \n\n"], ids=["empty", "blank"])
def test_a_file_without_records_is_reported_with_a_remedy(
    here: Path,
    capsys: pytest.CaptureFixture[str],
    option: str,
    file: str,
    what: str,
    target: str,
    content: bytes,
) -> None:
    (here / "folder").mkdir()
    (here / "folder" / "b.run.gz").write_bytes(gzip.compress(content))
    (here / "folder" / "good.run").write_text(FILES["a.run"])
    if file != "folder":
        (here / file).write_bytes(b"[]" if file.endswith(".json") else content)
    said = warnings(capsys, f"--{option}", file)
    path = "folder/b.run.gz" if file == "folder" else file
    assert [line for line in said if line.endswith("or remove it")] == [
        f"warning: {path}: {what} track/{target}, or remove it"
    ]
    assert (here / "track" / target).exists()


def test_files_with_records_are_not_reported(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--queries", "queries.tsv", "--bank", "bank.jsonl", "--passages", "passages.jsonl")
    said = warnings(capsys, *words, "--qrels", "qrels.txt", "--runs", "a.run", "--runs", "said.jsonl")
    assert not any("or remove it" in line for line in said)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("bank.jsonl", '{"query_id": "q1", "question": "?"}\n{"query_id": "q1"}\n', "bank.jsonl:2: "),
        ("queries.tsv", "q1\tcats\nq2\n", "queries.tsv:2: "),
        ("qrels.txt", "q1 0 d1 1\nq1 0 d2 x\n", "qrels.txt:2: the label (column 4) is not a whole number"),
    ],
)
def test_an_input_that_cannot_be_read_is_a_warning_with_its_line(
    here: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, reason: str
) -> None:
    (here / name).write_text(text)
    words = ["--queries", "queries.tsv", "--bank", "bank.jsonl", "--passages", "passages.jsonl"]
    found = warnings(capsys, *words, "--qrels", "qrels.txt", "--runs", "a.run")
    assert len(found) == 1
    assert found[0].startswith(f"warning: track/{reason}")


def test_a_broken_bank_line_is_named_with_what_to_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "bank.jsonl").write_text('{"query_id": "q1", "question": "?"}\n{"query_id": "q1"\n')
    words = ["--queries", "queries.tsv", "--bank", "bank.jsonl", "--passages", "passages.jsonl"]
    assert run(["init", "a track", *words, "--runs", "a.run"]) == 0
    following = "next: mend a track/bank.jsonl, then: trecexam watch 'a track' --once"
    assert capsys.readouterr().err.splitlines()[-1] == following
    assert run(["watch", "a track", "--once"]) == 2
    said = capsys.readouterr().err
    assert "a track/bank.jsonl:2: not valid JSON" in said
    assert "mend the line; `trecexam bank check 'a track/bank.jsonl'` names all such lines" in said
    assert run(["bank", "check", "a track/bank.jsonl"]) == 1


def test_an_empty_folder_of_runs_is_a_warning(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "empty").mkdir()
    found = warnings(capsys, "--bank", "bank.jsonl", "--passages", "passages.jsonl", "--runs", "empty")
    assert found == ["warning: empty: the folder has no files; put runs or responses into track/runs"]


def test_a_server_without_address_or_model_is_a_warning(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = warnings(capsys, "--queries", "queries.tsv", "--bank", "bank.jsonl", "--grader", "openai")
    reason = "the grader openai needs `base_url` and `model`: set in [grader]"
    assert found[0] == f"warning: track/trecexam.toml: {reason}"
