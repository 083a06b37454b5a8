"""Warnings about measures that count from 1 although the threshold of the track differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ir_measures import RR, P
from support import HashGrader

import trecexam
from trecexam.cli.main import run


def cautions(root: Path, scores: str, measures: list[Any] | None = None, **how: bool) -> list[str]:
    """Only the notes on thresholds, with these settings of [scores]."""
    (root / "trecexam.toml").write_text(f"[track]\ndepth = 8\n[scores]\n{scores}\n")
    with trecexam.open_track(root, grader=HashGrader()) as track:
        return [line for line in track.leaderboard(measures, **how).notes if " on count in " in line]


@pytest.mark.parametrize(
    ("scores", "measures", "expected"),
    [
        (
            "",
            ["AP", "nDCG@8", P @ 5, "P(rel=4)@8", "Judged@8"],
            ["ratings from 1 on count in AP, P@5; this track's threshold is 4: AP(rel=4), P(rel=4)@5"],
        ),
        ("", ["P(rel=1)@5", P(rel=1) @ 5, "RR(rel=3)", "Cover(rel=2)@8", "Cover@8", "nCover@8"], []),
        ("min_rating = 1", ["P@5", "AP"], []),
        # Cover's default is 4.
        (
            "min_rating = 3",
            ["P@8", "Cover@8", "nCover(partial=3)@8"],
            [
                "ratings from 1 on count in P@8; this track's threshold is 3: P(rel=3)@8",
                "ratings from 4 on count in Cover(rel=4)@8, nCover(rel=4,partial=3)@8; this track's "
                "threshold is 3: Cover(rel=3)@8, nCover(rel=3)@8",
            ],
        ),
        ("", None, []),
    ],
)
def test_the_warning_names_measures_that_count_from_1_and_those_at_the_threshold(
    small_track: Path, scores: str, measures: list[Any] | None, expected: list[str]
) -> None:
    assert cautions(small_track, scores, measures) == expected


def test_if_min_relevant_is_not_set_graded_judgments_give_a_note(small_track: Path) -> None:
    assert cautions(small_track, "", official=True) == [
        "judgments from 1 on count in AP, P@8, and labels go up to 3: set `min_relevant` in [scores] to the "
        "label from which a passage is relevant, 2 in TREC DL"
    ]
    assert cautions(small_track, "min_relevant = 1", official=True) == []
    qrels = small_track / "qrels.txt"
    columns = [line.split() for line in qrels.read_text().splitlines()]
    qrels.write_text("".join(f"{q} 0 {doc} {min(int(n), 1)}\n" for q, _, doc, n in columns))
    assert cautions(small_track, "", official=True) == []


def test_correlations_show_the_warning_for_both_sides_everywhere(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = graded / "trecexam.toml"
    toml.write_text(toml.read_text() + "\n[scores]\nmin_relevant = 2\n")
    rubric = "ratings from 1 on count in P@8; this track's threshold is 4: P(rel=4)@8"
    official = "judgments from 1 on count in AP; this track's threshold is 2: AP(rel=2)"
    assert run(["correlate", str(graded), "-m", "P@8", "--official-measure", "AP"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert (lines.count(rubric), lines.count(official)) == (1, 1)
    assert run(["correlate", str(graded), "-m", "P@8", "--thresholds"]) == 0
    assert " from 1 on" not in capsys.readouterr().err


def test_judgments_are_counted_from_1_if_min_relevant_is_2(small_track: Path) -> None:
    given = ["nDCG@5", "P@5", RR @ 5, "AP(rel=1)"]
    assert cautions(small_track, "min_relevant = 2", given, official=True) == [
        "judgments from 1 on count in P@5, RR@5; this track's threshold is 2: P(rel=2)@5, RR(rel=2)@5"
    ]
    with trecexam.open_track(small_track, grader=HashGrader()) as track:
        board = track.leaderboard(official=True)
    assert board.measures == ("nDCG@10", "AP(rel=2)", "P(rel=2)@8")
    assert board.notes == ()
