"""Which runs rank passages like an encoder: against brute force, scipy, and simulated runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from trecexam.scores.encoder_likeness import ALPHA, MIN_RUNS, agreement, runs_like_encoder


def naive(cosines: list[float]) -> float:
    """The agreement of one ranking, pair by pair."""
    there = [(rank, value) for rank, value in enumerate(cosines) if not math.isnan(value)]
    in_order = sorted(there, key=lambda pair: (-pair[1], pair[0]))
    signs = [
        0 if a[1] == b[1] else 1 if a[0] < b[0] else -1
        for n, a in enumerate(in_order)
        for b in in_order[n + 1 : n + 4]
    ]
    return sum(signs) / len(signs) if signs else math.nan


def test_agreement_equals_kendalls_tau_on_short_rankings() -> None:
    cosines = np.random.default_rng(5).normal(size=(6, 4))
    expected = [stats.kendalltau(-np.arange(4), row).statistic for row in cosines]
    assert agreement(cosines) == pytest.approx(expected, abs=1e-12)


def test_agreement_compares_only_passages_near_each_other_in_the_encoder_order() -> None:
    rng = np.random.default_rng(6)
    cosines = rng.integers(0, 9, (40, 20)) / 8
    cosines[rng.random(cosines.shape) < 0.3] = np.nan
    cosines[0], cosines[1, 1:] = np.nan, np.nan
    cosines[2:4] = rng.normal(size=(2, 20))
    expected = [naive(row.tolist()) for row in cosines]
    assert agreement(cosines) == pytest.approx(expected, nan_ok=True, abs=1e-12)
    assert np.isnan(expected[:2]).all()
    ordered = np.sort(rng.normal(size=(2, 20)))
    assert agreement(ordered[:, ::-1]).tolist() == [1, 1]
    assert agreement(ordered).tolist() == [-1, -1]


def test_few_good_passages_before_many_bad_ones_do_not_count_as_agreement() -> None:
    rng = np.random.default_rng(7)
    cosines = np.hstack([rng.normal(0.8, 0.05, (500, 5)), rng.normal(0.3, 0.05, (500, 15))])
    tau = np.mean([stats.kendalltau(-np.arange(20), row).statistic for row in cosines])
    assert tau > 0.35
    assert abs(agreement(cosines).mean()) < 0.15


def drawn(rng: np.random.Generator, n_runs: int, n_queries: int = 30) -> np.ndarray:
    """Agreements of runs that differ in how good they are, on queries that differ, too."""
    runs, queries = rng.normal(0.25, 0.04, (n_runs, 1)), rng.normal(0, 0.1, n_queries)
    values: np.ndarray = np.clip(runs + queries + rng.normal(0, 0.15, (n_runs, n_queries)), -1, 1)
    return values


def test_a_run_is_listed_by_its_scaled_distance_from_the_median_run() -> None:
    values = drawn(np.random.default_rng(7), 20)
    values[[3, 11]] += 0.6
    values[4, :10] = np.nan
    means = [np.mean(row[~np.isnan(row)]) for row in values]
    z = (means - np.median(means)) / (1.4826 * np.median(np.abs(means - np.median(means))))
    p = sorted((float(stats.t.sf(each, 19)), run) for run, each in enumerate(z))
    expected = []
    for n, (each, run) in enumerate(p):
        if each * (20 - n) >= ALPHA:
            break
        expected.append(run)
    assert runs_like_encoder(values) == sorted(expected) == [3, 11]


@pytest.mark.parametrize("n_runs", [MIN_RUNS, 15, 37])
def test_runs_drawn_from_the_same_distribution_are_rarely_listed(n_runs: int) -> None:
    rng = np.random.default_rng(8)
    listed = [bool(runs_like_encoder(drawn(rng, n_runs))) for _ in range(600)]
    assert np.mean(listed) < 0.02


def test_two_kinds_of_runs_are_not_outliers_whatever_their_numbers() -> None:
    rng = np.random.default_rng(9)
    for share in (0.3, 0.5, 0.7):
        values = drawn(rng, 40)
        values[: int(40 * share)] += 0.12
        assert runs_like_encoder(values) == []


def test_nothing_is_listed_for_few_runs_equal_runs_or_runs_without_rankings() -> None:
    values = drawn(np.random.default_rng(10), MIN_RUNS)
    values[0] = 1
    assert runs_like_encoder(values) == [0]
    assert runs_like_encoder(values[:-1]) == []
    assert runs_like_encoder(np.full((20, 5), 0.5)) == []
    assert runs_like_encoder(np.full((20, 5), np.nan)) == []
    assert runs_like_encoder(np.empty((0, 5))) == []
    values[1] = np.nan
    assert runs_like_encoder(values) == []
