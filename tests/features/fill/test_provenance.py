"""What lies beside qrels that were written, and who reads it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from support import printed

import trecexam
from trecexam.cli.main import run

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
BY_MODEL = f"holds labels by {MODEL}, not human judgments"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "d"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert run(["demo", str(root)]) == 0
    return root


@pytest.fixture
def demo(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, "d")
    return tmp_path


def beside(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(Path(f"{name}.json").read_text())
    return value


def test_exported_labels_say_whose_they_are_and_are_unchanged(
    demo: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["export", "qrels", "d"]) == 0
    plain = capsysbinary.readouterr().out
    assert run(["export", "qrels", "d", "-o", "e.qrels"]) == 0
    assert Path("e.qrels").read_bytes() == plain
    said = beside("e.qrels")
    assert said["sha256"] == hashlib.sha256(plain).hexdigest()
    assert said["lines"] == {"model": plain.count(b"\n")}
    assert said["share_by_people"] == 0
    assert (said["model"], said["version"], said["made_by"]) == (MODEL, trecexam.__version__, "export qrels")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", said["date"])
    before = Path("e.qrels.json").read_bytes()
    with trecexam.open_track("d") as track:
        track["rubric"].export.qrels("e.qrels")
    assert Path("e.qrels.json").read_bytes() == before


def test_merged_judgments_say_how_many_lines_are_peoples(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fill", "d", "-o", "m.qrels"]) == 0
    said = beside("m.qrels")
    assert said["lines"] == {"human": 96, "model": 215}
    assert said["share_by_people"] == pytest.approx(96 / 311, abs=1e-4)
    assert said["sha256"] == hashlib.sha256(Path("m.qrels").read_bytes()).hexdigest()
    assert run(["audit", "--qrels", "m.qrels", "--runs", "d/runs"]) in (0, 1)
    assert f"m.qrels holds 215 of 311 labels (69%) by {MODEL}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["fill", "export qrels"])
def test_a_file_of_somebody_else_is_not_overwritten(
    demo: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("f.qrels.json").write_text('{"mine": 1}')
    assert "f.qrels.json: exists" in printed(capsys, *command.split(), "d", "-o", "f.qrels", status=2).err
    assert not Path("f.qrels").exists()
    assert Path("f.qrels.json").read_text() == '{"mine": 1}'


def test_a_new_track_and_its_commands_say_whose_labels_its_judgments_are(
    demo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "qrels", "d", "-o", "e.qrels"]) == 0
    files = ["--queries", "d/queries.tsv", "--passages", "d/passages.jsonl", "--runs", "d/runs"]
    bank = ["--bank", "d/bank.questions.jsonl", "--recorded", "d/grades.jsonl.gz"]
    assert run(["init", "t", "--qrels", "e.qrels", *files, *bank]) == 0
    assert f"note: qrels.txt {BY_MODEL}" in capsys.readouterr().err
    assert Path("t/qrels.txt.json").read_bytes() == Path("e.qrels.json").read_bytes()
    assert run(["watch", "t", "--once"]) in (0, 1)
    said = printed(capsys, "agreement", "t").err
    assert f"qrels.txt {BY_MODEL}" in said
    assert "people's judgments" not in said
    assert "changed" not in said
    with Path("t/qrels.txt").open("a") as file:
        file.write("q01 0 another 1\n")
    assert run(["agreement", "t"]) == 0
    assert f"qrels.txt {BY_MODEL}; the file was changed since" in capsys.readouterr().err
    assert run(["fill", "t", "-o", "n.qrels"]) == 2
    assert "`trecexam export qrels` wrote it, as qrels.txt.json beside it says" in capsys.readouterr().err


def test_a_path_in_place_of_holes_fills_as_the_command_does(demo: Path) -> None:
    assert run(["fill", "d", "-o", "m.qrels"]) == 0
    with trecexam.open_track("d") as track:
        filled = track.fill("n.qrels")
        assert filled.filled == 215
        for end in ("", ".sources.tsv"):
            assert Path(f"n.qrels{end}").read_bytes() == Path(f"m.qrels{end}").read_bytes()
        assert track.fill(Path("n.qrels")).filled == 215
        with pytest.raises(trecexam.TrecexamError, match="is in a track"):
            track.fill("d/qrels.txt")
        with pytest.raises(trecexam.TrecexamError, match="name one"):
            track.fill("n.qrels", output="o.qrels")
        with pytest.raises(TypeError, match=r"track\.fill\.find"):
            track.fill(3)


@pytest.mark.parametrize(
    "other",
    [
        {"model": {"a": 1}},
        {"lines": {"human": -5, "model": 5}},
        {"lines": {"human": 10**400}},
        {"lines": {}},
    ],
)
def test_a_damaged_provenance_file_is_taken_for_another_one(
    demo: Path, other: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["fill", "d", "-o", "m.qrels"]) == 0
    Path("m.qrels.json").write_text(json.dumps(beside("m.qrels") | other))
    Path("m.qrels.sources.tsv").unlink()
    for name in ("m.qrels", "m.qrels.json"):
        Path(name).replace(Path("d", name.replace("m.qrels", "qrels.txt")))
    for words in (["agreement", "d"], ["leaderboard", "d", "--official"]):
        assert run(words) in (0, 1)
        assert "Traceback" not in capsys.readouterr().err
