from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import make_small_track

import trecexam
from trecexam.cli.main import run

Capture = pytest.CaptureFixture[str]


def write(path: Path, *texts: str) -> Path:
    path.write_text("".join(json.dumps({"query_id": "q1", "question": text}) + "\n" for text in texts))
    return path


def test_a_clean_bank_exits_with_0_and_prints_only_the_header(tmp_path: Path, capsys: Capture) -> None:
    assert run(["bank", "check", str(write(tmp_path / "b.jsonl", "a?", "b?"))]) == 0
    out, err = capsys.readouterr()
    assert out == "file\tline\tquery_id\titem_id\tproblem\ttext\n"
    assert err == "2 items of 1 query: nothing to look at\n"


def test_problems_are_rows_and_exit_with_1(tmp_path: Path, capsys: Capture) -> None:
    bank = write(tmp_path / "b.jsonl", "a?", "1. b?", "A?")
    assert run(["bank", "check", str(bank)]) == 1
    out, err = capsys.readouterr()
    rows = [line.split("\t") for line in out.splitlines()[1:]]
    assert [(row[0], row[1], row[2], row[5]) for row in rows] == [
        (str(bank), "2", "q1", "1. b?"),
        (str(bank), "3", "q1", "A?"),
    ]
    assert err == "3 items of 1 query: 2 problems\n"
    assert run(["bank", "check", str(bank), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [row["problem"] for row in found["findings"]] == [row[4] for row in rows]


def test_several_files_are_checked_as_one_bank(tmp_path: Path, capsys: Capture) -> None:
    one, other = write(tmp_path / "a.jsonl", "a?"), write(tmp_path / "b.jsonl", "a?")
    assert run(["bank", "check", str(one)]) == 0
    assert run(["bank", "check", str(one), str(other)]) == 1
    assert f"first on {one}:1" in capsys.readouterr().out


def test_in_a_track_queries_without_items_or_text_are_found_too(tmp_path: Path, capsys: Capture) -> None:
    root = make_small_track(tmp_path / "track")
    assert run(["bank", "check", str(root)]) == 0
    (root / "queries.tsv").write_text("q1\tquery number q1\nq7\tseven\n")
    write(root / "bank.more.jsonl", "query number q1", "fine?")
    (root / "bank.none.jsonl").write_text('{"query_id": "q9", "question": "nine?"}\n')
    capsys.readouterr()
    assert run(["bank", "check", str(root)]) == 1
    out = capsys.readouterr().out
    rows = [line.split("\t")[:5] for line in out.splitlines()[1:]]
    assert [[row[0], row[1], row[2], row[4]] for row in rows] == [
        ["bank.more.jsonl", "1", "q1", "a copy of the query"],
        ["bank.none.jsonl", "1", "q9", "the track has no text of this query"],
        ["queries.tsv", "", "q7", "a query without any items"],
    ]
    with trecexam.open_track(root) as track:
        assert len(track.bank.check().problems) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"q1\twhat?\n", "this is not a test bank but queries"),
        (b"q1 Q0 d1 1 2.0 r\n", "this is not a test bank but run"),
        (b"\xff\xfe\0", "b.jsonl"),
        (b"\x1f\x8b junk", "b.jsonl"),
    ],
)
def test_another_or_an_unreadable_file_is_a_one_line_error(
    tmp_path: Path, capsys: Capture, content: bytes, said: str
) -> None:
    (tmp_path / "b.jsonl").write_bytes(content)
    assert run(["bank", "check", str(tmp_path / "b.jsonl")]) == 2
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert said in err


def test_a_missing_path_or_a_folder_without_a_track_is_rejected(tmp_path: Path, capsys: Capture) -> None:
    assert run(["bank", "check", str(tmp_path / "nix.jsonl")]) == 2
    assert run(["bank", "check", str(tmp_path)]) == 2
    assert run(["bank", "check"]) == 2
    bank = write(tmp_path / "b.jsonl", "a?")
    assert run(["bank", "check", str(bank), str(tmp_path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("trecexam: ") for line in lines)
