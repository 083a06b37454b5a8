"""Swapped pairs against loops over all pairs, scipy's paired t test, and Holm's procedure by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from trecexam.extensions.disagreements.swaps import SIGNIFICANCE, find_swaps
from trecexam.scores.paired_tests import holm, paired_p


def test_holm_equals_a_hand_computation() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 is 0.02, 0.03, 0.06, 0.04; the last may not decrease.
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]).tolist() == [1, 1]
    assert holm([]).tolist() == []


def test_a_missing_p_value_counts_as_a_hypothesis_that_is_never_rejected() -> None:
    found = holm([0.01, math.nan, 0.02])
    assert found[[0, 2]].tolist() == pytest.approx([0.03, 0.04])
    assert math.isnan(found[1])


def stepwise_rejections(p: list[float], alpha: float) -> set[int]:
    """Holm's original procedure: step down through the sorted p values until one is too large."""
    rejected = set()
    for step, index in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        if p[index] > alpha / (len(p) - step):
            break
        rejected.add(index)
    return rejected


@given(st.lists(st.floats(0, 1).map(lambda x: round(x, 3) ** 2), min_size=1, max_size=12))
def test_adjusted_values_reject_what_the_stepwise_procedure_rejects(p: list[float]) -> None:
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    alpha = 0.05
    # If a product rounds to alpha itself, the two may differ.
    if not np.isclose(adjusted, alpha, atol=1e-12).any():
        assert set(np.flatnonzero(adjusted <= alpha).tolist()) == stepwise_rejections(p, alpha)


def test_p_values_equal_the_paired_t_test(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).integers(0, 20, (7, 12)) / 20
    expected = [stats.ttest_rel(a, b).pvalue for a, b in itertools.combinations(values, 2)]
    assert paired_p(values) == pytest.approx(expected)
    monkeypatch.setattr("trecexam.scores.paired_tests._CELLS", 40)
    assert paired_p(values) == pytest.approx(expected)


def test_one_query_or_constant_differences_have_no_test() -> None:
    assert np.isnan(paired_p(np.array([[0.1], [0.2]]))).all()
    constant = np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.4], [0.1, 0.2, 0.3]])
    assert np.isnan(paired_p(constant)).all()


def naive(names: list[str], rubric: np.ndarray, official: np.ndarray) -> dict[tuple[str, str], str]:
    """(better officially, better on the rubric) -> verdict."""
    pairs = list(itertools.combinations(range(len(names)), 2))
    adjusted = []
    for side in (official, rubric):
        p = [float(stats.ttest_rel(side[i], side[j]).pvalue) for i, j in pairs]
        rank = sorted(range(len(p)), key=p.__getitem__)
        running, found = 0.0, [0.0] * len(p)
        for step, index in enumerate(rank):
            running = max(running, min(1.0, p[index] * (len(p) - step)))
            found[index] = running
        adjusted.append(found)
    swapped = {}
    for number, (i, j) in enumerate(pairs):
        by_official = official[i].mean() - official[j].mean()
        by_rubric = rubric[i].mean() - rubric[j].mean()
        if by_official * by_rubric < -1e-12:
            a, b = (i, j) if by_official > 0 else (j, i)
            significant = sum(side[number] < SIGNIFICANCE for side in adjusted)
            swapped[names[a], names[b]] = ["passive", "mixed", "active"][significant]
    return swapped


def test_swaps_equal_a_loop_over_all_pairs() -> None:
    rng = np.random.default_rng(3)
    names = [f"run{number}" for number in range(8)]
    seen = set()
    for spread in (0.02, 0.1, 0.3):
        level = rng.random((8, 1))
        official = level + rng.normal(0, spread, (8, 20))
        rubric = np.roll(level, 1, axis=0) + rng.normal(0, spread, (8, 20))
        found = find_swaps(names, rubric, official)
        verdicts = {(s.run_a, s.run_b): s.verdict for s in found.swaps}
        assert verdicts == naive(names, rubric, official)
        seen |= set(verdicts.values())
        assert found.n_pairs == 28
        kept = sum(found.agreements.values()) + found.n_tied + len(found.swaps)
        assert kept == 28
        order = ["active", "mixed", "passive"]
        keys = [(order.index(str(s.verdict)), -s.official_difference) for s in found.swaps]
        assert keys == sorted(keys)
    assert seen == {"active", "mixed", "passive"}


def test_one_swap_equals_a_hand_computation() -> None:
    official = np.array([[0.9, 0.8, 0.9, 0.7], [0.1, 0.2, 0.1, 0.3]])
    rubric = np.array([[0.2, 0.1, 0.3, 0.2], [0.9, 0.9, 0.8, 0.6]])
    (swap,) = find_swaps(["good", "bad"], rubric, official).swaps
    assert (swap.run_a, swap.run_b, swap.verdict) == ("good", "bad", "active")
    assert swap.official_difference == pytest.approx(0.65)
    assert swap.rubric_difference == pytest.approx(-0.6)
    assert swap.official_p == swap.official_p_holm == pytest.approx(stats.ttest_rel(*official).pvalue)
    assert swap.rubric_p == swap.rubric_p_holm == pytest.approx(stats.ttest_rel(*rubric).pvalue)
    # The order of the two does not matter.
    assert find_swaps(["bad", "good"], rubric[::-1], official[::-1]).swaps == (swap,)


def test_a_tie_on_one_side_is_not_a_swap() -> None:
    official = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    rubric = np.array([[0.9, 0.9, 0.8], [0.1, 0.2, 0.3]])
    for one, other in ((rubric, official), (official, rubric)):
        found = find_swaps(["a", "b"], one, other)
        assert (found.n_pairs, found.n_tied, found.swaps) == (1, 1, ())


def test_official_ranks_have_no_test_and_no_verdict() -> None:
    rubric = np.array([[0.1, 0.2, 0.1], [0.9, 0.8, 0.9], [0.95, 0.9, 0.9]])
    found = find_swaps(["first", "second", "fourth"], rubric, np.array([-1.0, -2.0, -4.0]))
    assert [(s.run_a, s.run_b, s.official_difference) for s in found.swaps] == [
        ("first", "fourth", 3), ("second", "fourth", 2), ("first", "second", 1),
    ]  # fmt: skip
    for swap in found.swaps:
        assert math.isnan(swap.official_p)
        assert math.isnan(swap.official_p_holm)
        assert swap.rubric_p_holm >= swap.rubric_p
        assert swap.verdict is None
    assert sum(found.disagreements.values()) == 0


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (3, 0)])
def test_equal_values_everywhere_give_no_swaps(shape: tuple[int, int]) -> None:
    names = [str(number) for number in range(shape[0])]
    found = find_swaps(names, np.ones(shape), np.ones(shape))
    assert found.swaps == ()
    assert found.n_pairs == found.n_tied


def test_all_runs_tied_give_no_swaps() -> None:
    found = find_swaps(["a", "b", "c"], np.ones((3, 4)), np.arange(12.0).reshape(3, 4))
    assert (found.n_pairs, found.n_tied, found.swaps) == (3, 3, ())


def test_arrays_of_wrong_shape_are_rejected() -> None:
    with pytest.raises(ValueError, match="don't fit"):
        find_swaps(["a", "b"], np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="1 runs"):
        find_swaps(["a"], np.ones((2, 3)), np.ones((2, 3)))


cells = arrays(np.float64, (5, 4), elements=st.integers(0, 4).map(float))


@given(cells, cells)
@settings(deadline=None)
def test_exchanging_the_sides_exchanges_the_roles(rubric: np.ndarray, official: np.ndarray) -> None:
    names = list("abcde")
    one, other = find_swaps(names, rubric, official), find_swaps(names, official, rubric)
    assert {(s.run_a, s.run_b, s.verdict) for s in one.swaps} == {
        (s.run_b, s.run_a, s.verdict) for s in other.swaps
    }
    assert one.n_tied == other.n_tied
    assert one.agreements == other.agreements
    assert find_swaps(names, official, official).swaps == ()
    for swap in one.swaps:
        assert swap.official_difference > 0 > swap.rubric_difference
