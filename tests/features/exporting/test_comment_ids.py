"""Query ids that begin with '#': trec_eval 10 takes their lines for comments, and so does trecexam."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import converters
from converters.records import Qrel, RunEntry
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
        said = [line for line in capsys.readouterr().err.splitlines() if "rejected: bank" in line]
        assert len(said) == 1
        assert said[0].startswith("rejected: bank.questions.jsonl: '#2': the query id begins with '#'")
    assert "\n#2 0 " not in "\n" + (renamed / "out" / "rubric.qrels").read_text()


@pytest.mark.parametrize(
    ("form", "rows"),
    [("run", [RunEntry("#2", "d", 1, 1.0, "r")]), ("qrels", [Qrel("#2", "d", 1)])],
)
def test_a_written_file_that_would_be_read_as_comments_gives_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str, rows: list[object]
) -> None:
    converters.write(rows, tmp_path / "x", form)
    assert [record.levelno for record in caplog.records if "'#2'" in record.message] == [logging.WARNING]
    with pytest.raises(converters.ConversionError, match="all lines are comments"):
        list(converters.read(tmp_path / "x", form))
