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
    """A track with two entries: the second is a run that was dropped."""
    write_run(graded / "runs" / "new.run", {q: [f"{q}-d0{n}" for n in (3, 7, 1)] for q in ("q1", "q2", "q3")})
    assert run(["watch", str(graded), "--once"]) == 0
    return graded


def shown(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0
) -> tuple[list[dict[str, str]], str]:
    """The rows of the table on stdout, and stderr."""
    capsys.readouterr()
    assert run(["history", *map(str, arguments)]) == status
    captured = capsys.readouterr()
    header, *lines = [line.split("\t") for line in captured.out.splitlines()] or [[""]]
    return [dict(zip(header, line, strict=True)) for line in lines], captured.err


def test_an_entry_is_a_line(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, err = shown(capsys, changed)
    assert [(row["entry"], row["new"], row["cause"]) for row in rows] == [
        ("1", "3", "the first leaderboard"),
        ("2", "1", "runs/new.run added"),
    ]
    assert err == ""
    assert [row["entry"] for row in shown(capsys, changed, "--last", "1")[0]] == ["2"]


def test_moves_are_the_log_in_out(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["history", str(changed), "--moves"]) == 0
    assert capsys.readouterr().out == (changed / "out" / "history" / "log.tsv").read_text()
    rows, _ = shown(capsys, changed, "2")
    assert rows == [row for row in shown(capsys, changed, "--moves")[0] if row["entry"] == "2"]


def test_one_run_can_be_followed(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = shown(capsys, changed, "--run", "run1")
    assert {row["run"] for row in rows} == {"run1"}
    assert rows[0]["rank.before"] == ""
    assert [row["run"] for row in shown(capsys, changed, "2", "--run", "new")[0]] == ["new"]
    assert "no entry names a run 'elsewhere'" in shown(capsys, changed, "--run", "elsewhere", status=2)[1]
    assert "entry 2 has no run 'elsewhere'" in shown(capsys, changed, "2", "--run", "elsewhere", status=2)[1]


def test_an_entry_on_a_terminal_is_a_text(
    changed: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = changed / "bank.questions.jsonl"
    bank.write_text(bank.read_text().replace("question 2 of q1?", "an edited question?"))
    grades = (changed / "grades.jsonl").read_text().splitlines()
    (changed / "grades.jsonl").write_text(
        "\n".join(line.replace('"rating": 5', '"rating": 1') if "q1/2" in line else line for line in grades)
        + "\n"
    )
    assert run(["watch", str(changed), "--once"]) == 0
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    capsys.readouterr()
    assert run(["history", str(changed), "3"]) == 0
    text = capsys.readouterr().out
    first, cause, *_ = text.splitlines()
    assert first.startswith("entry 3, 20")
    assert "bank.questions.jsonl" in cause
    assert "1 item edited in query q1" in text
    assert "labels changed" in text or "label changed" in text
    assert "\t" not in text


def test_labels_of_an_entry_are_a_table(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, _ = shown(capsys, changed, "2", "--labels")
    with trecexam.open_track(changed) as track:
        labels = track.history_entry(2).board.labels
    assert [(row["query_id"], row["doc_id"]) for row in rows] == [(r.query_id, r.doc_id) for r in labels]


def test_json_of_an_entry_is_its_file(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["history", str(changed), "2", "--json"]) == 0
    assert capsys.readouterr().out == (changed / "out" / "history" / "000002.json").read_text()
    assert run(["history", str(changed), "--json"]) == 0
    assert [row["entry"] for row in json.loads(capsys.readouterr().out)] == [1, 2]


def test_a_track_without_a_history_says_where_it_will_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_small_track(tmp_path / "t", config=RECORDED)
    rows, err = shown(capsys, root)
    assert rows == []
    assert "no history yet: `trecexam watch" in err
    assert "`trecexam watch` makes the first one" in shown(capsys, root, "1", status=2)[1]
    assert not (root / "out").exists()


def test_an_entry_that_is_not_there_is_one_line(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no entry 9: there are 1 to 2" in shown(capsys, changed, "9", status=2)[1]
    assert "Traceback" not in shown(capsys, changed, "0", status=2)[1]


def test_a_damaged_log_or_entry_is_one_line_and_the_log_can_be_made_anew(
    changed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = changed / "out" / "history" / "log.tsv"
    before = log.read_text()
    log.write_text(before + "2\tjunk\n")
    assert (
        "log.tsv: is damaged, or of another version of trecexam; remove it"
        in shown(capsys, changed, status=2)[1]
    )
    log.unlink()
    assert run(["watch", str(changed), "--once"]) == 0
    assert log.read_text() == before
    entry = changed / "out" / "history" / "000002.json"
    entry.write_text(entry.read_text()[:100])
    assert "000002.json: is damaged" in shown(capsys, changed, "2", status=2)[1]


def test_options_that_do_not_go_together_are_said(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--labels is about one entry" in shown(capsys, changed, "--labels", status=2)[1]
    assert "--last is for the list" in shown(capsys, changed, "2", "--last", "1", status=2)[1]


def test_the_history_is_read_without_the_inputs(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(changed / "runs")
    (changed / "bank.questions.jsonl").unlink()
    (changed / "grades.jsonl").unlink()
    assert len(shown(capsys, changed)[0]) == 2
