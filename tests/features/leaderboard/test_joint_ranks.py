"""Ranks on the leaderboard of several graders."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trecexam.features.leaderboard.joint import JointLeaderboard
from trecexam.scores.leaderboard import Row, Score, Scores
from trecexam.tables.excerpt import excerpt

NAN = float("nan")
MEASURES = ("rubric:P@10", "support:SupportF1")


def board(*means: Sequence[float]) -> JointLeaderboard:
    rows = (
        Row(f"run{n}", 3, 3, Scores([Score(mean, 0.1) for mean in of_run], MEASURES))
        for n, of_run in enumerate(means)
    )
    return JointLeaderboard(MEASURES, 3, "all", tuple(rows))


@pytest.mark.parametrize(
    ("means", "ranks"),
    [
        ([(0.5, NAN), (0.5, 0.1), (0.2, NAN), (NAN, 0.9), (NAN, 0.9)], (1, 1, 3, None, None)),
        # No run has the first column.
        ([(NAN, 0.9), (NAN, 0.9), (NAN, NAN)], (1, 1, None)),
        ([(NAN, NAN)], (None,)),
        ([], ()),
    ],
)
def test_runs_share_a_rank_where_equal_and_have_none_without_a_value(
    means: list[tuple[float, float]], ranks: tuple[int | None, ...]
) -> None:
    assert board(*means).ranks == ranks


def test_terminal_and_page_show_the_same_ranks() -> None:
    several = board((0.5, NAN), (NAN, 0.9))
    assert [row[0].text for row in excerpt(several.table, 9).rows] == ["1", "–"]  # noqa: RUF001
    assert [line.split()[:2] for line in repr(several).splitlines()[1:3]] == [["1", "run0"], ["–", "run1"]]  # noqa: RUF001
