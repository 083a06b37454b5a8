"""Pearson's r, tau_GAP, and all coefficients of TREC AutoJudge, against its code."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from trecexam.scores.correlation import Correlation, correlate, per_query_correlations
from trecexam.scores.rank_correlation import QueryDraws

values = st.one_of(
    st.integers(0, 4).map(float), st.floats(0, 1, allow_subnormal=False).map(lambda value: round(value, 6))
)
both_sides = st.integers(3, 14).flatmap(
    lambda n: st.tuples(*(st.lists(values, min_size=n, max_size=n) for _ in range(2)))
)


def tau_gap(truth: Sequence[float], estimate: Sequence[float]) -> float:
    """By the sum in the paper."""
    order = sorted(range(len(truth)), key=lambda run: (-estimate[run], run))
    shares = []
    for place in range(1, len(order)):
        gaps = [truth[above] - truth[order[place]] for above in order[:place]]
        if any(gaps):
            shares.append(sum(gap for gap in gaps if gap > 0) / sum(map(abs, gaps)))
    return 2 * sum(shares) / len(shares) - 1


def of_means(ours: Sequence[float], truth: Sequence[float]) -> Correlation:
    return correlate(np.array(ours)[:, None], np.array(truth), draws=QueryDraws(0))


@given(both_sides)
def test_pearson_equals_scipy_and_tau_gap_the_paper(sides: tuple[list[float], list[float]]) -> None:
    ours, truth = sides
    found = of_means(ours, truth)
    if len(set(ours)) == 1 or len(set(truth)) == 1:
        assert math.isnan(found.pearson_r)
        assert math.isnan(found.tau_gap)
        return
    assert found.pearson_r == pytest.approx(stats.pearsonr(ours, truth).statistic, abs=1e-9)
    assert found.tau_gap == pytest.approx(tau_gap(truth, ours), abs=1e-9)
    again = per_query_correlations(np.array(ours)[:, None], np.array(truth)[:, None])[0]
    assert (again.pearson_r, again.tau_gap) == (found.pearson_r, found.tau_gap)


def test_for_ranks_alone_no_correlation_of_scores_is_given() -> None:
    found = correlate([[0.1], [0.5], [0.3]], [-3.0, -1.0, -2.0], ranks=True)
    assert found.kendall_tau.value == 1
    assert math.isnan(found.pearson_r)
    assert math.isnan(found.tau_gap)
