"""`trecexam overall`: the coverage of all runs together, next to the official ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trecexam
from trecexam.cli.main import run


def table(
    capsys: pytest.CaptureFixture[str], *words: object, command: str = "overall"
) -> tuple[list[str], dict[str, dict[str, str]]]:
    """The header, and the row of each run."""
    capsys.readouterr()
    assert run([command, *map(str, words)]) == 0
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    return header, {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def settings(root: Path, measures: list[str]) -> None:
    with (root / "trecexam.toml").open("a") as file:
        file.write(f"[scores]\nmeasures = {json.dumps(measures)}\n")


def test_the_row_has_only_the_cover_of_the_whole_pool(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measures = ["nDCG@10", "Cover(rel=5)@2", "nCover(rel=5)@2", "Cover(rel=5,partial=2)"]
    settings(graded, measures)
    header, rows = table(capsys, graded)
    plain_header, plain = table(capsys, graded, command="leaderboard")
    assert header == plain_header
    assert list(rows) == ["_overall_", *plain]
    assert {name: row for name, row in rows.items() if name != "_overall_"} == plain
    overall = rows["_overall_"]
    with trecexam.open_track(graded) as track:
        by_query: dict[str, list[tuple[int, ...]]] = {}
        for row in track.qrels():
            by_query.setdefault(row.query_id, []).append(row.ratings)
    best = [[max(column) for column in zip(*ratings, strict=True)] for ratings in by_query.values()]
    full = [sum(rating >= 5 for rating in of_query) / len(of_query) for of_query in best]
    half = [sum(rating >= 2 for rating in of_query) / len(of_query) for of_query in best]
    assert 0 < sum(full) < len(full), "else the test says nothing"
    assert float(overall["Cover(rel=5)@2"]) == pytest.approx(sum(full) / 3, abs=1e-4)
    assert float(overall["nCover(rel=5)@2"]) == 1
    assert float(overall["Cover(rel=5,partial=2)"]) == pytest.approx((sum(full) + sum(half)) / 6, abs=1e-4)
    assert overall["nDCG@10"] == overall["nDCG@10.stderr"] == ""


def test_official_ranks_are_shown_next_to_it(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (graded / "official_leaderboard.json").write_text('{"run2": 1, "run0": 2}')
    settings(graded, ["Cover(rel=4)@5"])
    header, rows = table(capsys, graded)
    assert header == ["run", "Cover(rel=4)@5", "Cover(rel=4)@5.stderr", "official_rank"]
    assert {name: row["official_rank"] for name, row in rows.items()} == {
        "_overall_": "", "run0": "2", "run1": "", "run2": "1",
    }  # fmt: skip
    capsys.readouterr()
    assert run(["overall", str(graded), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert {
        row["run"]: row["official_rank"] for row in value["leaderboard"] if row["run"] != "_overall_"
    } == {"run0": 2, "run1": None, "run2": 1}
    assert list(value["overall"]) == ["Cover(rel=4)@5"]
    assert value["overall"]["Cover(rel=4)@5"]["mean"] == pytest.approx(
        float(rows["_overall_"][header[1]]), abs=1e-4
    )
