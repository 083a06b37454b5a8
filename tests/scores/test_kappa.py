from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from trecexam.scores.kappa import kappa, weighted_kappa

#: Passages as (query, first rater's label, second rater's label), labels 0..2.
Ratings = list[tuple[int, int, int]]
some_ratings = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2), st.integers(0, 2)), max_size=40)


def counted(ratings: Ratings, k: int = 3) -> np.ndarray:
    counts = np.zeros((8, k, k), np.int64)
    for query, a, b in ratings:
        counts[query, a, b] += 1
    return counts


def naive_kappa(ratings: Ratings, disagreement: int | None = None) -> float:
    """1 - observed / expected disagreement, by all pairs of one rater's label with the other's."""

    def differ(a: int, b: int) -> float:
        return float(a != b) if disagreement is None else abs(a - b) ** disagreement

    n = len(ratings)
    expected = sum(differ(a, b) for (_, a, _), (_, _, b) in itertools.product(ratings, ratings)) / n**2
    return 1 - sum(differ(a, b) for _, a, b in ratings) / n / expected if expected else math.nan


def naive_error(ratings: Ratings, shift: float = 1e-6) -> tuple[float, float]:
    """The standard error and the effective number of queries: slopes by adding a fraction of a passage."""

    def value(shares: np.ndarray) -> float:
        shares = shares / shares.sum()
        chance = shares.sum(axis=1) @ shares.sum(axis=0)
        return float((np.trace(shares) - chance) / (1 - chance))

    table = counted(ratings).sum(axis=0) / len(ratings)
    of_query = dict.fromkeys((query for query, _, _ in ratings), 0.0)
    for query, a, b in ratings:
        bit = np.zeros((3, 3))
        bit[a, b] = shift
        of_query[query] += (value(table + bit) - value(table)) / shift
    n_queries = len(of_query)
    squares = sum(total**2 for total in of_query.values())
    effective = squares**2 / sum(total**4 for total in of_query.values()) if squares else 1.0
    return math.sqrt(n_queries / (n_queries - 1) * squares) / len(ratings), effective


@given(some_ratings.filter(bool))
def test_kappa_equals_its_definition(ratings: Ratings) -> None:
    counts = counted(ratings)
    assert kappa(counts).value == pytest.approx(naive_kappa(ratings), nan_ok=True)
    for power in (1, 2):
        assert weighted_kappa(counts.sum(axis=0), power) == pytest.approx(
            naive_kappa(ratings, power), nan_ok=True
        )


@given(some_ratings)
def test_kappa_is_within_its_interval_and_symmetric(ratings: Ratings) -> None:
    counts = counted(ratings)
    found, swapped = kappa(counts), kappa(counts.transpose(0, 2, 1))
    assert swapped.value == pytest.approx(found.value, nan_ok=True)
    assert (swapped.low, swapped.high) == pytest.approx((found.low, found.high), nan_ok=True)
    if not math.isnan(found.low):
        assert -1 <= found.low <= found.value <= found.high <= 1


@given(
    some_ratings.filter(
        lambda r: (
            len({q for q, _, _ in r}) > 4 and len({a for _, a, _ in r}) > 1 and len({b for _, _, b in r}) > 1
        )
    )
)
@settings(deadline=None)
def test_the_interval_is_the_delta_method_clustered_by_query(ratings: Ratings) -> None:
    found = kappa(counted(ratings))
    error, effective = naive_error(ratings)
    reach = float(stats.t.ppf(0.975, min(effective, len({query for query, _, _ in ratings}) - 1))) * error
    assert found.low == pytest.approx(max(-1, found.value - reach), abs=1e-3)
    assert found.high == pytest.approx(min(1, found.value + reach), abs=1e-3)


def test_with_one_passage_per_query_the_error_equals_fleiss_cohen_and_everitt() -> None:
    # Their formula for a table of shares p with marginals r and c, po and pe as usual.
    table = np.array([[53, 5, 2], [11, 14, 5], [1, 6, 3]])
    p = table / table.sum()
    r, c, po = p.sum(axis=1), p.sum(axis=0), float(np.trace(p))
    pe = float(r @ c)
    first = sum(p[i, i] * ((1 - pe) - (c[i] + r[i]) * (1 - po)) ** 2 for i in range(3))
    second = sum(p[i, j] * (c[i] + r[j]) ** 2 for i, j in itertools.product(range(3), repeat=2) if i != j) * (
        (1 - po) ** 2
    )
    n = int(table.sum())
    variance = (first + second - (po * pe - 2 * pe + po) ** 2) / (n * (1 - pe) ** 4)
    counts = np.zeros((n, 3, 3), np.int64)
    cells = np.repeat(np.arange(9), table.ravel())
    counts[np.arange(n), cells // 3, cells % 3] = 1
    found = kappa(counts)
    error = math.sqrt(variance * n / (n - 1))
    # At most Student's t with one degree of freedom per query, at least the normal distribution's.
    assert 1.96 * error < found.high - found.value <= stats.t.ppf(0.975, n / 10) * error


def test_the_interval_has_about_its_nominal_coverage() -> None:
    """21 queries that differ much, as in TREC DL 2019; ignoring them halves the coverage."""
    rng = np.random.default_rng(0)
    alpha = np.array([3.0, 1.5, 1.0, 2.5])
    share = (alpha / alpha.sum()).reshape(2, 2)
    chance = share.sum(axis=1) @ share.sum(axis=0)
    truth = (np.trace(share) - chance) / (1 - chance)
    held, trials = 0, 600
    for _ in range(trials):
        counts = np.array([rng.multinomial(70, rng.dirichlet(alpha)) for _ in range(21)]).reshape(21, 2, 2)
        found = kappa(counts)
        held += found.low <= truth <= found.high
    assert 0.92 <= held / trials <= 0.98


def test_kappa_and_its_interval_may_be_undefined() -> None:
    assert math.isnan(kappa(counted([])).value)
    assert math.isnan(kappa(counted([(0, 1, 1), (1, 1, 1)])).value)
    assert math.isnan(weighted_kappa(counted([(0, 1, 1)])[0], 2))
    one_label = kappa(counted([(0, 1, 1), (1, 1, 0), (2, 1, 2)]))
    assert one_label.value == 0
    assert math.isnan(one_label.low)
    assert math.isnan(one_label.high)
    found = kappa(counted([(2, 0, 0), (2, 1, 1), (2, 1, 0)]))
    assert found.value == pytest.approx(0.4)
    assert math.isnan(found.low)
    several = [(query, *labels) for query in range(5) for labels in ((0, 0), (1, 1), (1, query % 2))]
    assert math.isnan(kappa(counted(several[:12])).low)
    assert not math.isnan(kappa(counted(several)).low)


def test_kappa_equals_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(3)
    ratings = [(int(q), int(a), int(b)) for q, a, b in rng.integers(0, 3, (200, 3))]
    counts = counted(ratings)
    ours, theirs = [a for _, a, _ in ratings], [b for _, _, b in ratings]
    assert kappa(counts).value == pytest.approx(metrics.cohen_kappa_score(ours, theirs))
    for power, name in ((1, "linear"), (2, "quadratic")):
        assert weighted_kappa(counts.sum(axis=0), power) == pytest.approx(
            metrics.cohen_kappa_score(ours, theirs, weights=name)
        )
