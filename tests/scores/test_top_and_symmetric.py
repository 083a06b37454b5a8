"""tau_ap_b and Kendall's tau among the best runs, against formulas and scipy; missing intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from trecexam.scores.correlation import MIN_DISTINCT, correlate, per_query_correlations


def best_by(truth: Sequence[float], k: int) -> list[int]:
    """The k best runs, and those tied with the last of them."""
    least = sorted(truth, reverse=True)[k - 1]
    return [run for run, score in enumerate(truth) if score >= least]


def column(scores: Sequence[float]) -> np.ndarray:
    return np.array(scores, float)[:, None]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # Printed by autojudge-evaluate 1.1.0.
        ([1, 2, 3, 4, 5, 6, 7], [2, 1, 4, 3, 6, 5, 7], 0.6944444444444446),
        ([0, 0, 0, 0, 0, 0, 3], [1, 2, 3, 4, 5, 6, 7], 0.4083333333333333),
        ([5, 5, 4, 3, 3, 1], [6, 2, 4, 2, 3, 1], 0.44166666666666665),
    ],
)
def test_tau_ap_b_equals_the_published_code(a: list[float], b: list[float], expected: float) -> None:
    assert correlate(column(a), column(b)).tau_ap_b.value == pytest.approx(expected)


@pytest.mark.parametrize("steps", [6, 100_000])
@pytest.mark.parametrize("n_runs", [3, 10, 16, 37])
def test_kendall_at_k_equals_scipy_among_the_best_by_the_truth(steps: int, n_runs: int) -> None:
    rng = np.random.default_rng(n_runs)
    for _ in range(15):
        ours, truth = rng.integers(0, steps, (2, n_runs)) / steps
        found = correlate(column(ours), column(truth))
        per_query = per_query_correlations(column(ours), column(truth))[0]
        board = correlate(column(ours), truth)
        for k in (10, 15, 20):
            value, of_query, of_board = (
                getattr(each, f"kendall_at_{k}").value for each in (found, per_query, board)
            )
            assert value == of_query == of_board or math.isnan(value)
            if k > n_runs:
                assert math.isnan(value)
                continue
            best = best_by(truth, k)
            assert value == pytest.approx(stats.kendalltau(ours[best], truth[best]).statistic, nan_ok=True)


def test_five_distinct_values_are_enough_and_four_are_not() -> None:
    assert MIN_DISTINCT == 5
    rng = np.random.default_rng(1)
    noise = rng.random((9, 12)) + np.arange(9)[:, None]
    for distinct in (4, 5):
        steps = np.minimum(np.arange(9), distinct - 1)[:, None] + np.linspace(0, 0.5, 12)
        for sides in ((steps, noise), (noise, steps)):
            assert math.isnan(correlate(*sides).kendall_tau.low) == (distinct == 4)


def test_for_the_best_runs_only_their_distinct_values_are_counted() -> None:
    """The ten best by the truth are tied on our side except for two; the others are not."""
    rng = np.random.default_rng(2)
    official = np.arange(20.0)[:, None] * 3 + rng.random((20, 9))
    ours = rng.random((20, 9))
    ours[10:] = 2.0
    ours[19] += 1
    found = correlate(ours, official)
    assert not math.isnan(found.kendall_at_10.value)
    assert math.isnan(found.kendall_at_10.low)
    assert not math.isnan(found.kendall_at_15.low)
    assert not math.isnan(found.kendall_tau.low)
