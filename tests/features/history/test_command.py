from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support import RECORDED, make_small_track, write_run

import trecexam
from trecexam.cli.main import run


@pytest.fixture
def changed(graded: Path) -> Path:
    """A track with two entries: the second is a dropped run."""
    write_run(graded / "runs" / "new.run", {q: [f"{q}-d0{n}" for n in (3, 7, 1)] for q in ("q1", "q2", "q3")})
    assert run(["watch", str(graded), "--once"]) == 0
    return graded


def run_command(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0
) -> tuple[list[dict[str, str]], str]:
    """The rows of the table on stdout, and stderr."""
    capsys.readouterr()
    assert run(["history", *map(str, arguments)]) == status
    captured = capsys.readouterr()
    header, *lines = [line.split("\t") for line in captured.out.splitlines()] or [[""]]
    return [dict(zip(header, line, strict=True)) for line in lines], captured.err


def test_an_entry_is_one_line(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, err = run_command(capsys, changed)
    assert [(row["entry"], row["new"], row["cause"]) for row in rows] == [
        ("1", "3", "the first leaderboard"),
        ("2", "1", "runs/new.run added"),
    ]
    assert err == ""


def test_an_entry_equals_its_rows_of_the_log_in_out(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, _ = run_command(capsys, changed, "2")
    header, *lines = (changed / "out" / "history" / "log.tsv").read_text().splitlines()
    log = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    assert rows == [row for row in log if row["entry"] == "2"]
    assert {row["run"]: row["because"] for row in rows}["new"] == "new"


def test_labels_of_an_entry_are_a_table(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = run_command(capsys, changed, "2", "--labels")
    with trecexam.open_track(changed) as track:
        labels = track.history.entry(2).board.labels
    assert [(row["query_id"], row["doc_id"]) for row in rows] == [(r.query_id, r.doc_id) for r in labels]


def test_json_of_an_entry_has_the_content_of_its_file(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["history", str(changed), "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    file = json.loads((changed / "out" / "history" / "000002.json").read_text())
    board = file.pop("board")
    assert {name: found[name] for name in file} == file
    assert [row["doc_id"] for row in found["labels"]] == [row["doc_id"] for row in board["labels"]]
    means = {(row["run"], row["measure"]): [row["mean.before"], row["mean.after"]] for row in found["means"]}
    assert means == {(row["run"], name): pair for row in board["runs"] for name, pair in row["means"].items()}
    assert run(["history", str(changed), "--json"]) == 0
    assert [row["entry"] for row in json.loads(capsys.readouterr().out)["history"]] == [1, 2]


def test_a_track_without_history_says_where_it_will_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "t", config=RECORDED)
    rows, err = run_command(capsys, root)
    assert rows == []
    assert "no history yet: `trecexam watch" in err
    assert "`trecexam watch` makes the first one" in run_command(capsys, root, "1", status=2)[1]
    assert not (root / "out").exists()


def test_a_missing_entry_is_a_one_line_error(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no entry 9: there are 1 to 2" in run_command(capsys, changed, "9", status=2)[1]
    assert "Traceback" not in run_command(capsys, changed, "0", status=2)[1]


def test_a_damaged_entry_is_a_one_line_error_and_the_log_can_be_rebuilt(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = changed / "out" / "history" / "log.tsv"
    before = log.read_text()
    log.unlink()
    assert run(["watch", str(changed), "--once"]) == 0
    assert log.read_text() == before
    entry = changed / "out" / "history" / "000002.json"
    entry.write_text(entry.read_text()[:100])
    assert "000002.json: is damaged" in run_command(capsys, changed, "2", status=2)[1]
    rows, err = run_command(capsys, changed)
    assert [row["entry"] for row in rows] == ["1"]
    assert "000002.json: is damaged" in err


def test_labels_are_those_of_the_last_entry_by_default(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(capsys, changed, "--labels") == run_command(capsys, changed, "2", "--labels")
    assert run_command(capsys, changed, "1", "--labels")[0] == []


def test_the_history_is_read_without_the_inputs(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(changed / "runs")
    (changed / "bank.questions.jsonl").unlink()
    (changed / "grades.jsonl").unlink()
    assert len(run_command(capsys, changed)[0]) == 2
