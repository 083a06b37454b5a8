"""Leaderboard values for other programs: values by query, and means as the query `all`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nltk_folder import with_nltk_data

import converters
import trecexam
from converters.measure_values import FORMS, read_values
from trecexam.cli.main import run


def exported(track: Path, form: str, to: Path) -> list[Path]:
    assert run(["export", "leaderboard", str(track), "--format", form, "-o", str(to)]) == 0
    return sorted(to.iterdir()) if to.is_dir() else [to]


@pytest.mark.parametrize("form", FORMS)
def test_written_values_equal_those_of_the_leaderboard(graded: Path, tmp_path: Path, form: str) -> None:
    files = exported(graded, form, tmp_path / "out" if form == "trec_eval" else tmp_path / "out.txt")
    rows = [row for path in files for row in read_values(path)]
    found = {(row.run, row.query_id, row.measure): row.value for row in rows}
    assert len(found) == len(rows)
    assert len(set(found.values())) > 3
    with trecexam.open_track(graded) as opened:
        frame, board = opened.per_query(), opened.leaderboard()
    expected = {
        (str(row.run), str(row.query_id), str(row.measure)): float(row.value) for row in frame.itertuples()
    }
    for row in board.rows:
        for measure in board.measures:
            expected[row.run, "all", measure] = float(row.scores[measure].mean)
    assert found == expected
    if form != "trec_eval":
        assert [each.run for each in converters.read(files[0], "leaderboard")] == [r.run for r in board.rows]


@pytest.mark.parametrize("average", ["all", "answered"])
def test_values_that_a_mean_leaves_out_are_not_written(graded: Path, tmp_path: Path, average: str) -> None:
    (graded / "runs" / "skips.run").write_text("q1 Q0 q1-d00 1 1 skips\n")
    with (graded / "trecexam.toml").open("a") as config:
        config.write(f'[scores]\naverage = "{average}"\n')
    (path,) = exported(graded, "tot", tmp_path / "out.txt")
    rows = [row for row in read_values(path) if row.run == "skips"]
    expected = ["all", "q1"] if average == "answered" else ["all", "q1", "q2", "q3"]
    assert sorted({row.query_id for row in rows}) == expected


@pytest.mark.parametrize("form", FORMS)
def test_auto_judge_evaluate_reads_equal_values(graded: Path, tmp_path: Path, form: str) -> None:
    with with_nltk_data():
        results = pytest.importorskip("autojudge_evaluate.eval_results")
    files = exported(graded, form, tmp_path / "out" if form == "trec_eval" else tmp_path / "out.txt")
    read = results.load(
        files[0].parent if form == "trec_eval" else files[0],
        form,
        recompute_aggregates=False,
        verify=True,
        on_missing="error",
    )
    (lines,) = exported(graded, "jsonl", tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {(e.run_id, e.topic_id, e.measure): e.value for e in read.entries} == {
        (row["run_id"], row["topic_id"], row["measure"]): row["value"] for row in rows
    }
    # It computes the means itself.
    again = results.load(
        files[0].parent if form == "trec_eval" else files[0],
        form,
        drop_aggregates=True,
        recompute_aggregates=True,
        verify=True,
        on_missing="error",
    )
    means = {(e.run_id, e.measure): e.value for e in again.entries if e.topic_id == "all"}
    assert means == pytest.approx(
        {(row["run_id"], row["measure"]): row["value"] for row in rows if row["topic_id"] == "all"}
    )
