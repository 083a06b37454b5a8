"""Rank-biased overlap, against its definition over every order of ties."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trecexam.scores.rank_correlation import DEFAULT_P, Ranks, rbo_columns


def rbo(a: Sequence[float], b: Sequence[float], p: float = DEFAULT_P) -> float:
    """Rank-biased overlap of one pair of leaderboards."""
    one, other = (Ranks.of(np.array(scores, np.float64)[:, None]) for scores in (a, b))
    return float(rbo_columns(one, other, p)[0])


def orders(scores: Sequence[float]) -> Iterator[tuple[int, ...]]:
    """Every ranking of the runs that the scores allow."""
    for order in itertools.permutations(range(len(scores))):
        if all(scores[x] >= scores[y] for x, y in itertools.pairwise(order)):
            yield order


def extrapolated(one: Sequence[int], other: Sequence[int], p: float) -> float:
    """RBO_ext as the paper defines it: the sum to infinity, with the last agreement continued."""
    n = len(one)
    agreement = [len(set(one[:d]) & set(other[:d])) / d for d in range(1, n + 1)]
    return (1 - p) * sum(p ** (d - 1) * agreement[min(d, n) - 1] for d in range(1, 3000))


def naive(a: Sequence[float], b: Sequence[float], p: float) -> float:
    found = [extrapolated(x, y, p) for x in orders(a) for y in orders(b)]
    return sum(found) / len(found)


def test_rbo_equals_hand_computed_values() -> None:
    # a, b, c and b, a, c: agreement 0, 1, 1 at depths 1, 2, 3.
    assert rbo([3, 2, 1], [2, 3, 1], 0.5) == pytest.approx(0.5)
    assert rbo([3, 2, 1], [30, 20, 10], 0.9) == 1
    # Either of two tied runs is first: they agree at depth 1 half the time.
    assert rbo([1, 1], [2, 1], 0.9) == pytest.approx(0.1 * 0.5 + 0.9)
    assert rbo([5], [7]) == 1
    for p in (0, 1, -0.1, 2):
        with pytest.raises(ValueError, match="between 0 and 1"):
            rbo([1, 2], [1, 2], p)


def test_rbo_equals_the_mean_over_every_order_of_ties() -> None:
    rng = random.Random(0)
    for _ in range(25):
        n = rng.randint(1, 4)
        a, b = ([rng.randint(0, 3) for _ in range(n)] for _ in range(2))
        p = rng.choice([0.3, 0.8, 0.95])
        assert rbo(a, b, p) == pytest.approx(naive(a, b, p), abs=1e-12)
    assert rbo([1, 1, 1, 0, 0], [2, 1, 0, 2, 2], 0.9) == pytest.approx(
        naive([1, 1, 1, 0, 0], [2, 1, 0, 2, 2], 0.9), abs=1e-12
    )


@pytest.mark.parametrize(("n", "p"), [(2, 0.9), (6, 0.5), (37, 0.9)])
def test_unrelated_leaderboards_have_a_positive_expected_rbo(n: int, p: float) -> None:
    expected = (1 - p**n) / (n * (1 - p))
    assert rbo([0] * n, range(n), p) == pytest.approx(expected)
    if n == 6:
        every = [rbo(order, range(n), p) for order in itertools.permutations(range(n))]
        assert sum(every) / len(every) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "p"), [(200, 0.9), (1000, 0.99), (300, 0.05)])
def test_rbo_of_long_leaderboards_equals_a_sum_over_depths(n: int, p: float) -> None:
    rng = np.random.default_rng(n)
    a, b = (rng.integers(0, n // 2, n) for _ in range(2))
    above, tied = zip(*(((s[None] > s[:, None]).sum(1), (s[None] == s[:, None]).sum(1)) for s in (a, b)),
                      strict=True)  # fmt: skip
    total = p**n
    for depth in range(1, n + 1):
        one, other = (np.clip((depth - up) / same, 0, 1) for up, same in zip(above, tied, strict=True))
        total += (1 - p) / p * p**depth / depth * float((one * other).sum())
    assert rbo(a, b, p) == pytest.approx(total, abs=1e-10)


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


@given(pairs, st.floats(0.05, 0.99), st.data())
@settings(deadline=None)
def test_rbo_is_symmetric_bounded_and_independent_of_the_order_of_runs(
    scores: list[tuple[int, int]], p: float, data: st.DataObject
) -> None:
    a, b = zip(*scores, strict=True)
    value = rbo(a, b, p)
    assert 0 < value <= 1
    assert rbo(b, a, p) == pytest.approx(value, abs=1e-12)
    again = data.draw(st.permutations(scores))
    assert rbo(*zip(*again, strict=True), p) == pytest.approx(value, abs=1e-12)
    if len(set(a)) == len(a):
        assert rbo(a, a, p) == pytest.approx(1)


def test_columns_equal_the_pairs_computed_one_by_one() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 4, (6, 30)).astype(float) for _ in range(2))
    found = rbo_columns(Ranks.of(a), Ranks.of(b))
    assert found == pytest.approx([rbo(x, y) for x, y in zip(a.T, b.T, strict=True)])
    single = rbo_columns(Ranks.of(a), Ranks.of(b[:, :1]))
    assert single == pytest.approx([rbo(x, b[:, 0]) for x in a.T])
