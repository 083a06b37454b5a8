from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from trecexam.scores.rank_correlation import find_outliers


def test_ranks_are_mean_ranks_and_the_furthest_run_is_first() -> None:
    rng = np.random.default_rng(0)
    rubric, official = (rng.integers(0, 4, (9, 3)) / 4 for _ in range(2))
    names = [f"run{number}" for number in range(9)]
    found = find_outliers(names, rubric, official)
    ours, theirs = (stats.rankdata(-np.round(side.mean(axis=1), 12)) for side in (rubric, official))
    assert {o.run: (o.rubric_rank, o.official_rank) for o in found} == {
        name: (a, b) for name, a, b in zip(names, ours.tolist(), theirs.tolist(), strict=True)
    }
    assert any(rank % 1 for rank in ours)
    distances = [abs(o.rubric_rank - o.official_rank) for o in found]
    assert distances == sorted(distances, reverse=True)
    for o in found:
        assert o.difference == o.rubric_rank - o.official_rank


def test_few_runs_or_no_queries_give_few_or_no_outliers() -> None:
    assert [o.difference for o in find_outliers(["a"], [[0.5]], [[0.1]])] == [0]
    assert find_outliers([], np.ones((0, 3)), np.ones((0, 3))) == ()
    assert find_outliers(["a"], np.ones((1, 0)), np.ones((1, 0))) == ()
    with pytest.raises(ValueError, match="2 runs"):
        find_outliers(["a", "b"], [[0.5]], [[0.1]])
