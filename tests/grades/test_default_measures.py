"""The default measures of a track."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from headings import score_columns
from support import HashGrader, tsv_rows

import trecexam
from trecexam.graders.base import Scale

STANDARD = ["P(rel=4)@8", "Cover(rel=4)@8", "nDCG@8", "AP(rel=4)", "nCover(rel=4)@8", "alpha_nDCG@8"]
RESPONSES = ["Cover(rel=4)@8", "nCover(rel=4)@8", "alpha_nDCG@8", "nDCG@8", "AP(rel=4)", "P(rel=4)@8"]
A, V = "all_score@8", "vital_score@8"


def with_responses(root: Path, *names: str, alone: bool = True) -> Path:
    """Systems that answer each query in a sentence, instead of the track's runs or in addition to them."""
    for path in (root / "runs").iterdir() if alone else ():
        path.unlink()
    for name in names:
        rows = (
            {"run_id": name, "query_id": f"q{n}", "response": f"{name} on {n}.", "citations": [f"q{n}-d03"]}
            for n in (1, 2, 3)
        )
        (root / "runs" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def with_importance(root: Path, *importances: str) -> Path:
    """Gives the items of each query these importances in turn."""
    path = root / "bank.questions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        for number, item in enumerate(row["questions"]):
            item["importance"] = importances[number % len(importances)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def measures(root: Path, grader: HashGrader | None = None) -> list[str]:
    """The measures of the leaderboard, after an update."""
    with trecexam.open_track(root, grader=grader or HashGrader()) as track:
        track.update()
        return list(track.leaderboard().measures)


def heading(path: Path) -> list[str]:
    header = score_columns(path.read_text().splitlines()[0].split("\t"))
    return [name for name in header if "stderr" not in name]


@pytest.mark.usefixtures("with_report")
def test_if_all_runs_are_responses_they_are_ranked_by_cover_everywhere(small_track: Path) -> None:
    root = with_responses(small_track, "a", "b", "c")
    ranks = [{"run": name, "rank": rank} for rank, name in enumerate("abc", 1)]
    (root / "official_leaderboard.json").write_text(json.dumps(ranks))
    with trecexam.open_track(root, grader=HashGrader()) as track:
        track.update()
        (root / "grades.jsonl").write_text("".join(json.dumps(row) + "\n" for row in track.grades()))
        assert list(track.leaderboard().measures) == RESPONSES
        # A passage's label changes no Cover: the default is the first measure that it changes.
        assert track.judge_next().facts["measure"] == "nDCG@8"
        assert track.compare().measures[0].measure == RESPONSES[0]
    out = root / "out"
    assert heading(out / "leaderboard.tsv") == RESPONSES
    for name in ("differences.tsv", "groups.tsv", "history.tsv"):
        assert {row["measure"] for row in tsv_rows(out / name)} == {RESPONSES[0]}, name
    assert tsv_rows(out / "correlation.tsv")[0]["measure"] == RESPONSES[0]
    assert f"by {RESPONSES[0]}" in (out / "report.html").read_text()


@pytest.mark.usefixtures("with_report")
def test_one_ranked_run_keeps_precision_first_with_a_note_on_comparable_measures(
    small_track: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = with_responses(small_track, "a", "b", alone=False)
    with trecexam.open_track(root, grader=HashGrader()) as track:
        caution = "generated responses (2 of 5 runs) fill few ranks and have little P(rel=4)@8"
        track.update()
        board = track.leaderboard()
        assert list(board.measures) == STANDARD
        line, _ = board.notes
        assert line.startswith(caution)
        assert line.endswith("by Cover(rel=4)@8")
        assert track.leaderboard(["P(rel=4)@5"]).notes == ()
    assert caution[1:] in (root / "out" / "report.html").read_text()


def test_with_importance_in_the_bank_runs_are_ranked_by_nuggetizer_a_and_v(small_track: Path) -> None:
    root = with_importance(small_track, "vital", "okay")
    assert measures(root) == [A, V, *STANDARD]
    assert measures(with_responses(root, "a", "b")) == [A, V, *RESPONSES]
    # Measures that are always zero are not defaults.
    assert measures(with_importance(root, "okay")) == [A, *RESPONSES]


def test_on_a_short_scale_an_item_counts_from_min_rating(small_track: Path) -> None:
    grader = HashGrader()
    grader.scale = Scale.up_to(3)  # type: ignore[attr-defined]
    grader.grade = lambda cells: iter([])  # type: ignore[method-assign]
    root = with_importance(small_track, "vital", "okay")
    names = measures(root, grader)
    assert names[:3] == ["Cover(rel=2)@8", "Cover(rel=2,weights='vital')@8", "P(rel=2)@8"]
    assert len(names) == len(set(names)) == 7
