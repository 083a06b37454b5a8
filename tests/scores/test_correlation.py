"""Correlations against pair counting and permutations, and their intervals against naive loops."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import t as student

from trecexam.scores.correlation import COEFFICIENTS, Correlation, correlate, per_query_correlations
from trecexam.scores.rank_correlation import QueryDraws, Ranks, tau_ap_columns, tau_b_columns


def naive_tau_b(a: Sequence[float], b: Sequence[float]) -> float:
    agree = disagree = tied_a = tied_b = 0
    for i, j in itertools.combinations(range(len(a)), 2):
        tied_a += a[i] == a[j]
        tied_b += b[i] == b[j]
        agree += (a[i] - a[j]) * (b[i] - b[j]) > 0
        disagree += (a[i] - a[j]) * (b[i] - b[j]) < 0
    pairs = len(a) * (len(a) - 1) / 2
    scale = math.sqrt((pairs - tied_a) * (pairs - tied_b))
    return (agree - disagree) / scale if scale else math.nan


def naive_spearman(a: Sequence[float], b: Sequence[float]) -> float:
    def ranks(values: Sequence[float]) -> list[float]:
        return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]

    x, y = ranks(a), ranks(b)
    mx, my = sum(x) / len(x), sum(y) / len(y)
    cov = sum((p - mx) * (q - my) for p, q in zip(x, y, strict=True))
    return cov / math.sqrt(sum((p - mx) ** 2 for p in x) * sum((q - my) ** 2 for q in y))


def naive_rbo(a: Sequence[float], b: Sequence[float], p: float) -> float:
    """RBO with the probabilities that each run is among the first d, counted over orders of its ties."""

    def among(scores: Sequence[float], run: int, depth: int) -> float:
        above = sum(other > scores[run] for other in scores)
        tied = sum(other == scores[run] for other in scores)
        return sum(above + place < depth for place in range(tied)) / tied

    n = len(a)
    overlaps = [sum(among(a, run, d) * among(b, run, d) for run in range(n)) for d in range(1, n + 1)]
    return p**n + (1 - p) / p * sum(p**d * x / d for d, x in enumerate(overlaps, 1))


def tau_ap(truth: Sequence[float], estimate: Sequence[float]) -> float:
    """tau_AP of one pair of leaderboards."""
    of_truth, of_estimate = (Ranks.of(np.array(side, np.float64)[:, None]) for side in (truth, estimate))
    return float(tau_ap_columns(of_truth, of_estimate)[0])


def naive_tau_ap(truth: Sequence[float], estimate: Sequence[float]) -> float:
    """The mean over every order of the runs that the estimate allows."""
    n = len(truth)
    found = []
    for order in itertools.permutations(range(n)):
        if any(estimate[x] < estimate[y] for x, y in itertools.pairwise(order)):
            continue
        total = 0.0
        for i in range(1, n):
            right = sum(1.0 if truth[y] > truth[order[i]] else 0.5 if truth[y] == truth[order[i]] else 0.0
                        for y in order[:i])  # fmt: skip
            total += right / i
        found.append(2 * total / (n - 1) - 1)
    return sum(found) / len(found)


def test_tau_ap_equals_hand_computed_values() -> None:
    # The estimate a, c, b for the truth a, b, c: C(2)/1 = 1, C(3)/2 = 1/2.
    assert tau_ap([3, 2, 1], [3, 1, 2]) == pytest.approx(2 / 2 * (1 + 0.5) - 1)
    # A swap at the top costs more: C(2)/1 = 0, C(3)/2 = 1.
    assert tau_ap([3, 2, 1], [2, 3, 1]) == pytest.approx(0.0)
    assert tau_ap([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert tau_ap([1, 2, 3, 4], [40, 30, 20, 10]) == -1
    assert math.isnan(tau_ap([1], [1]))


def test_tau_ap_equals_the_mean_over_all_orders_of_ties() -> None:
    rng = random.Random(0)
    for _ in range(150):
        n = rng.randint(2, 6)
        truth, estimate = ([rng.randint(0, 3) for _ in range(n)] for _ in range(2))
        assert tau_ap(truth, estimate) == pytest.approx(naive_tau_ap(truth, estimate), abs=1e-12)


def test_tau_b_of_columns_equals_pair_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 6, (7, 40)).astype(float) for _ in range(2))
    a[:, 3] = 1
    expected = [naive_tau_b(x, y) for x, y in zip(a.T, b.T, strict=True)]
    assert tau_b_columns(a, b) == pytest.approx(expected, nan_ok=True)
    one = [naive_tau_b(x, b[:, 0]) for x in a.T]
    assert tau_b_columns(a, b[:, :1]) == pytest.approx(one, nan_ok=True)
    # In several parts.
    monkeypatch.setattr("trecexam.scores.rank_correlation._CELLS", 7 * 49)
    assert tau_b_columns(a, b) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("steps", [3, 1000])
def test_tau_and_rho_equal_scipy(steps: int) -> None:
    from scipy import stats

    rng = np.random.default_rng(5)
    for _ in range(10):
        rubric, official = (rng.integers(0, steps, (30, 1)) / steps for _ in range(2))
        found = correlate(rubric, official, draws=QueryDraws(0))
        assert found.kendall_tau.value == pytest.approx(stats.kendalltau(rubric, official).statistic)
        assert found.spearman_rho.value == pytest.approx(stats.spearmanr(rubric, official).statistic)


@pytest.mark.parametrize("steps", [4, 1000])
def test_all_coefficients_are_computed_from_the_means(steps: int) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        rubric, official = (rng.integers(0, steps, (6, 5)) / steps for _ in range(2))
        means = [[round(sum(row) / 5, 12) for row in side.tolist()] for side in (rubric, official)]
        found = correlate(rubric, official, draws=QueryDraws(20))
        assert found.n_runs == 6
        assert found.kendall_tau.value == pytest.approx(naive_tau_b(*means))
        assert found.spearman_rho.value == pytest.approx(naive_spearman(*means))
        assert found.tau_ap.value == pytest.approx(naive_tau_ap(means[1], means[0]))
        assert found.rbo.value == pytest.approx(naive_rbo(*means, p=0.9))
        assert correlate(rubric, official, rbo_p=0.3).rbo.value == pytest.approx(naive_rbo(*means, p=0.3))
        distinct = min(len(set(side)) for side in means)
        for name in COEFFICIENTS[:5]:
            _, low, high = getattr(found, name)
            assert low <= high if distinct >= 5 else math.isnan(low) and math.isnan(high)
        board = correlate(rubric, means[1], draws=QueryDraws(20))
        assert (board.kendall_tau.value, board.spearman_rho.value, board.tau_ap.value, board.rbo.value) == (
            found.kendall_tau.value, found.spearman_rho.value, found.tau_ap.value, found.rbo.value,
        )  # fmt: skip


def four(ours: Sequence[float], truth: Sequence[float]) -> list[float]:
    return [
        naive_tau_b(ours, truth),
        naive_spearman(ours, truth),
        naive_tau_ap(truth, ours),
        naive_rbo(ours, truth, 0.9),
    ]


def naive_denoised(rubric: np.ndarray, official: np.ndarray) -> np.ndarray:
    """C^1/2 (I - C^-1/2 S C^-1/2)^1/2 C^-1/2 times the runs' centred means, all with scipy's roots."""
    n_runs, n_queries = rubric.shape
    sides = np.array([rubric, official])
    effects = sides.mean(axis=2) - sides.mean(axis=(1, 2))[:, None]
    noise = np.zeros((2, 2))
    for a, b, run, query in itertools.product(range(2), range(2), range(n_runs), range(n_queries)):
        of_a, of_b = (
            sides[s, run, query] - sides[s, :, query].mean() - sides[s, run].mean() + sides[s].mean()
            for s in (a, b)
        )
        noise[a, b] += of_a * of_b / ((n_runs - 1) * (n_queries - 1)) / n_queries
    scale = np.diag(1 / effects.std(axis=1, ddof=1))
    root = sqrtm(np.cov(scale @ effects))
    inside = np.linalg.inv(root) @ scale @ noise @ scale @ np.linalg.inv(root)
    share, axes = np.linalg.eigh(np.eye(2) - inside)
    kept = axes @ np.diag(np.sqrt(np.clip(share, 0.02, 1))) @ axes.T
    return np.asarray(np.linalg.inv(scale) @ root @ kept @ np.linalg.inv(root) @ scale @ effects)


def test_the_interval_equals_naive_subsets_and_samples_of_denoised_runs() -> None:
    rng = np.random.default_rng(4)
    n_runs, n = 5, 6
    rubric = rng.random((n_runs, n)) + np.arange(n_runs)[:, None] / 4
    official = rng.random((n_runs, n)) + np.arange(n_runs)[:, None] / 3
    seed, resamples = 7, 40
    samples = np.random.default_rng([seed, 1]).integers(0, n, size=(resamples // 2, n)).tolist()

    def mean(row: Sequence[float], queries: Sequence[int]) -> float:
        return sum(row[q] for q in queries) / len(queries)

    # Without any two of the six queries: all 15 subsets, since there are fewer than 40.
    subsets = [
        four(*([mean(row, kept) for row in side.tolist()] for side in (rubric, official)))
        for kept in itertools.combinations(range(n), 4)
    ]
    error = np.std(subsets, axis=0) * math.sqrt((6 - 2) / 2)
    centres = naive_denoised(rubric, official)
    sampled = []
    for sample in samples:
        moved = [
            [
                c + math.sqrt(6 / 5) * (mean(row, sample) - mean(row, range(n)))
                for c, row in zip(centre, side, strict=True)
            ]
            for centre, side in zip(centres.tolist(), (rubric.tolist(), official.tolist()), strict=True)
        ]
        sampled.append(four(*moved))
    bias = np.array(four(*centres.tolist())) - np.mean(sampled, axis=0)
    values = np.array(four(*([mean(row, range(n)) for row in side.tolist()] for side in (rubric, official))))
    half = float(student.ppf(0.975, n - 1)) * error
    low = np.maximum(values + np.minimum(bias, 0) - half, [-1, -1, -1, 0])
    high = np.minimum(values + np.maximum(bias, 0) + half, 1)
    found = correlate(rubric, official, draws=QueryDraws(resamples, seed))
    ends = zip(found.kendall_tau, found.spearman_rho, found.tau_ap, found.rbo, strict=True)
    assert list(ends)[1:] == [pytest.approx(tuple(low)), pytest.approx(tuple(high))]


def test_an_official_leaderboard_is_fixed_while_queries_are_left_out() -> None:
    rng = np.random.default_rng(4)
    rubric, board = rng.random((6, 7)) + np.arange(6)[:, None] / 4, [6.0, 3, 4, 1, 2, 5]
    kept = list(itertools.combinations(range(7), 5))
    taus = [naive_tau_b([sum(row[q] for q in k) for row in rubric.tolist()], board) for k in kept]
    half = float(student.ppf(0.975, 6)) * float(np.std(taus)) * math.sqrt((7 - 2) / 2)
    found = correlate(rubric, board)
    assert found.kendall_tau.value - found.kendall_tau.low >= min(half, found.kendall_tau.value + 1) - 1e-9
    assert found.kendall_tau.high - found.kendall_tau.value >= min(half, 1 - found.kendall_tau.value) - 1e-9
    # One end is determined by the error alone; the bias widens the other.
    assert min(
        found.kendall_tau.value - found.kendall_tau.low, found.kendall_tau.high - found.kendall_tau.value
    ) == pytest.approx(half)


def test_leaderboards_that_agree_on_every_subset_have_an_interval_of_one_point() -> None:
    slope = np.arange(5.0)[:, None] + np.linspace(0, 0.5, 8)
    found = correlate(slope, slope)
    assert found.kendall_tau == pytest.approx((1, 1, 1))
    turned = correlate(slope, -slope)
    assert turned.kendall_tau == pytest.approx((-1, -1, -1))


def test_four_queries_have_values_without_an_interval_whatever_their_order() -> None:
    rubric = np.array(
        [[0.1, 0.2, 0.3, 0.7], [0.7, 0.3, 0.2, 0.1], [0.3, 0.1, 0.7, 0.2], [0.9, 0.9, 0.9, 0.9]]
    )
    official = np.array([[1.0] * 4, [1.0] * 4, [1.0] * 4, [2.0] * 4])
    # Ties of means are found although sums round differently.
    assert correlate(rubric, official).kendall_tau.value == 1
    rng = np.random.default_rng(0)
    rubric, official = rng.random((9, 5)), rng.random((9, 5))
    assert not math.isnan(correlate(rubric, official).kendall_tau.low)
    few = correlate(rubric[:, :4], official[:, :4])
    assert not math.isnan(few.kendall_tau.value)
    assert math.isnan(few.kendall_tau.low)
    assert math.isnan(few.rbo.high)


def test_undefined_coefficients_are_nan_without_warnings(recwarn: pytest.WarningsRecorder) -> None:
    flat = np.ones((3, 4))
    slope = np.arange(12.0).reshape(3, 4)
    for rubric, official in (
        (flat, slope),
        (slope, flat),
        (slope, np.ones(3)),
        (slope[:1], slope[:1]),
        (slope[:0], slope[:0]),
        (slope[:, :0], slope[:, :0]),
        (slope[:, :0], np.arange(3)),
    ):
        found = correlate(rubric, official)
        assert found.n_runs == len(rubric)
        _, *coefficients, pearson_r, tau_gap = astuple(found)
        assert all(map(math.isnan, (*itertools.chain(*coefficients), pearson_r, tau_gap)))
    per_query_correlations(flat, slope)
    assert not recwarn.list


def test_per_query_correlations_equal_those_of_each_query() -> None:
    rng = np.random.default_rng(3)
    rubric, official = (rng.integers(0, 4, (5, 6)).astype(float) for _ in range(2))
    rubric[:, 2] = 0.5
    found = per_query_correlations(rubric, official)
    assert len(found) == 6
    for query, one in enumerate(found):
        assert isinstance(one, Correlation)
        assert one.n_runs == 5
        assert math.isnan(one.kendall_tau.low)
        if query == 2:
            assert math.isnan(one.kendall_tau.value)
            continue
        a, b = rubric[:, query], official[:, query]
        assert one.kendall_tau.value == pytest.approx(naive_tau_b(a, b))
        assert one.spearman_rho.value == pytest.approx(naive_spearman(a, b))
        assert one.tau_ap.value == pytest.approx(naive_tau_ap(b, a))
        assert one.rbo.value == pytest.approx(naive_rbo(a, b, 0.9))


@pytest.mark.parametrize(
    ("rubric", "official"),
    [
        (np.ones((3, 4)), np.ones((3, 5))),
        (np.ones((3, 4)), np.ones((2, 4))),
        (np.ones((3, 4)), np.ones(4)),
        (np.ones(3), np.ones(3)),
        (np.ones((3, 4)), np.float64(1)),
        (np.full((3, 4), math.nan), np.ones((3, 4))),
    ],
)
def test_arrays_of_wrong_shape_are_rejected(rubric: np.ndarray, official: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"don't fit|finite"):
        correlate(rubric, official)
    with pytest.raises(ValueError, match=r"don't fit|finite"):
        per_query_correlations(rubric, official)
