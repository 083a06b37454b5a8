"""If correlations have no interval, every output says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import (
    RECORDED,
    all_notes,
    make_small_track,
    printed,
    record_grades,
    switch_report_on,
    tsv_table,
    write_run,
)

from trecexam.cli.main import run

WHY = "no interval where the runs (of kendall@k: the best k) have fewer than 5 distinct values on a side"
SIDES = ["-m", "P(rel=4)@8", "--official-measure", "nDCG@10"]


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six queries and seven runs, five of them equal; read-only."""
    root = make_small_track(tmp_path_factory.mktemp("tied") / "track", queries=6)
    same = {f"q{q}": [f"q{q}-d{d:02}" for d in range(8)] for q in range(1, 7)}
    for number in range(3, 7):
        write_run(root / "runs" / f"run{number}.run", same)
    write_run(root / "runs" / "run0.run", same)
    record_grades(root)
    (root / "trecexam.toml").write_text(RECORDED)
    switch_report_on(root)
    assert run(["watch", str(root), "--once"]) == 0
    return root


def test_few_distinct_values_give_no_interval_and_every_output_says_so(
    tied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, err = printed(capsys, "correlate", str(tied), *SIDES)
    (row,) = tsv_table(out)
    assert row["kendall_tau"]
    assert {value for name, value in row.items() if name.endswith((".low", ".high"))} == {""}
    assert f"{WHY}\n" in err
    assert WHY in json.loads(printed(capsys, "correlate", str(tied), *SIDES, "--json")[0])["notes"]
    assert WHY in json.loads((tied / "out" / "correlation.json").read_text())["notes"]
    assert WHY in (tied / "out" / "report.html").read_text()


def test_few_queries_are_given_as_the_reason(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = all_notes(capsys, "correlate", graded)
    assert "no intervals: they need at least 5 queries\n" in notes
    assert "distinct" not in notes
