"""Query ids that begin with '#': trec_eval 10 silently treats their lines as comments."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from trecexam.cli.main import run


@pytest.fixture
def renamed(graded: Path) -> Path:
    """The graded track, with its query q2 named #2."""
    for path in (*graded.glob("*.*"), *(graded / "runs").glob("*")):
        if path.is_file():
            path.write_text(path.read_text().replace("q2", "#2"))
    assert run(["watch", str(graded), "--once"]) == 1
    return graded


def test_each_update_reports_query_ids_that_begin_with_a_hash_once(
    renamed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        capsys.readouterr()
        assert run(["watch", str(renamed), "--once"]) == 1
        said = [line for line in capsys.readouterr().err.splitlines() if "comments" in line]
        assert len(said) == 1
        assert said[0].startswith("rejected: bank.questions.jsonl: '#2': the query id begins with '#'")
    assert "\n#2 0 " in "\n" + (renamed / "out" / "rubric.qrels").read_text()


def test_a_track_without_such_ids_gets_no_warning(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", str(graded), "--once"]) == 0
    assert run(["export", "qrels", str(graded)]) == 0
    assert "comments" not in capsys.readouterr().err


@pytest.mark.parametrize("what", ["qrels", "subtopics"])
def test_exports_warn_and_still_write_the_file(
    renamed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    assert run(["export", what, str(renamed), "-o", str(tmp_path / "x")]) == 0
    assert any(line.startswith("#2 ") for line in (tmp_path / "x").read_text().splitlines())
    assert [record.levelno for record in caplog.records if "'#2'" in record.message] == [logging.WARNING]


def test_conversions_to_runs_or_qrels_warn_too(
    renamed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert (
        run(["convert", str(renamed / "runs" / "run0.run"), str(tmp_path / "copy.run"), "--to", "run"]) == 0
    )
    assert run(["convert", str(renamed / "qrels.txt"), str(tmp_path / "copy.qrels"), "--to", "qrels"]) == 0
    assert sum("'#2'" in record.message for record in caplog.records) == 2


def test_filled_judgments_give_the_warning(
    renamed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    qrels = renamed / "qrels.txt"
    qrels.write_text("".join(line for line in qrels.read_text().splitlines(True) if "d03" not in line))
    assert run(["fill", str(renamed), "-o", str(tmp_path / "filled.qrels")]) in (0, 1)
    assert any(line.startswith("#2 ") for line in (tmp_path / "filled.qrels").read_text().splitlines())
    assert any("'#2'" in record.message for record in caplog.records)
