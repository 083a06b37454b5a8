"""Paired tests against scipy, pair by pair, and corrections against their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from trecexam.scores.paired_tests import corrected, paired_t, randomisation_p


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(n, k=1)


def test_t_p_and_effect_size_equal_scipy_and_the_definition() -> None:
    values = np.random.default_rng(0).integers(0, 20, (6, 15)) / 20
    tests = paired_t(values, *pairs(6))
    for place, (a, b) in enumerate(itertools.combinations(values, 2)):
        expected = stats.ttest_rel(a, b)
        assert tests.t[place] == pytest.approx(expected.statistic)
        assert tests.p[place] == pytest.approx(expected.pvalue)
        assert tests.difference[place] == pytest.approx(a.mean() - b.mean())
        assert tests.effect_size[place] == pytest.approx((a - b).mean() / (a - b).std(ddof=1))


def test_one_query_equal_runs_or_undefined_values_have_no_t_test() -> None:
    one_query = paired_t(np.array([[0.1], [0.4]]), *pairs(2))
    assert one_query.difference.tolist() == pytest.approx([-0.3])
    values = np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.1, math.nan, 0.5]])
    for tests in (one_query, paired_t(values, *pairs(4)), paired_t(np.zeros((2, 0)), *pairs(2))):
        assert np.isnan([tests.t, tests.p, tests.effect_size]).all()


@pytest.mark.parametrize("permutations", [256, 100_000])
def test_p_of_few_queries_is_exact_over_all_exchanges(permutations: int) -> None:
    values = np.random.default_rng(1).integers(0, 6, (5, 8)) / 5
    p = randomisation_p(values, *pairs(5), permutations, 0)
    for place, (a, b) in enumerate(itertools.combinations(values, 2)):
        reached = [
            abs(sum(sign * d for sign, d in zip(signs, a - b, strict=True))) >= abs((a - b).sum()) - 1e-9
            for signs in itertools.product((1, -1), repeat=8)
        ]
        assert p[place] == sum(reached) / 256
        expected = stats.permutation_test(
            (a, b), lambda x, y, axis: (x - y).mean(axis=axis), permutation_type="samples", vectorized=True
        )
        assert p[place] == pytest.approx(expected.pvalue)


def test_p_of_many_queries_is_sampled_and_reproducible() -> None:
    random = np.random.default_rng(2)
    values = random.normal(0, 1, (4, 40)) + np.array([[0.0], [0.1], [0.3], [0.8]])
    drawn = randomisation_p(values, *pairs(4), 20_000, 3)
    np.testing.assert_allclose(randomisation_p(values, *pairs(4), 20_000, 3), drawn, atol=1e-3)
    assert np.abs(drawn - randomisation_p(values, *pairs(4), 20_000, 4)).max() > 1e-5
    assert drawn.min() >= 1 / 20_001
    # The two tests agree if differences are normal.
    assert drawn == pytest.approx(paired_t(values, *pairs(4)).p, abs=0.02)


def test_pairs_in_any_order_and_with_one_run_alone_have_the_same_p() -> None:
    values = np.random.default_rng(4).normal(0, 1, (5, 30))
    first, second = pairs(5)
    p = randomisation_p(values, first, second, 999, 0)
    turned = np.random.default_rng(0).permutation(len(first))
    assert (randomisation_p(values, second[turned], first[turned], 999, 0) == p[turned]).all()
    with_last = second == 4
    assert (randomisation_p(values, first[with_last], second[with_last], 999, 0) == p[with_last]).all()


def test_p_of_the_randomisation_test_is_1_for_equal_runs_and_undefined_without_values() -> None:
    values = np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3], [0.1, math.nan, 0.5]])
    for permutations in (2, 1000):
        p = randomisation_p(values, *pairs(3), permutations, 0)
        assert p[0] == 1
        assert np.isnan(p[1:]).all()
    assert randomisation_p(np.array([[0.1], [0.9]]), *pairs(2), 1000, 0).tolist() == [1]
    assert np.isnan(randomisation_p(np.zeros((2, 0)), *pairs(2), 1000, 0)).all()
    assert not len(randomisation_p(values[:1], *pairs(1), 1000, 0))


def test_corrections_equal_their_definitions() -> None:
    p = np.array([0.01, 0.04, math.nan, 0.02])
    assert corrected(p, "none") is p
    assert corrected(p, "bonferroni") == pytest.approx([0.04, 0.16, math.nan, 0.08], nan_ok=True)
    assert corrected(p, "holm") == pytest.approx([0.04, 0.08, math.nan, 0.06], nan_ok=True)
    # p times m over its rank, at most that of the next one.
    assert corrected(p, "fdr_bh") == pytest.approx([0.04, 0.16 / 3, math.nan, 0.04], nan_ok=True)
    harmonic = 1 + 1 / 2 + 1 / 3 + 1 / 4
    by = [0.04 * harmonic, 0.16 / 3 * harmonic, math.nan, 0.04 * harmonic]
    assert corrected(p, "fdr_by") == pytest.approx(by, nan_ok=True)
    for name in ("none", "holm", "bonferroni", "fdr_bh", "fdr_by"):
        assert corrected(np.zeros(0), name).tolist() == []
    with pytest.raises(ValueError, match="unknown correction 'tukey'; there are holm, bonferroni"):
        corrected(p, "tukey")
