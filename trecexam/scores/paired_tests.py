"""Two-sided paired tests of differences of runs over queries, and corrections for multiple tests.

Smucker, Allan & Carterette, "A Comparison of Statistical Significance Tests for Information Retrieval
Evaluation", CIKM 2007, compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trecexam.scores.values import TIE_DECIMALS

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
#: By the names that PyTerrier and statsmodels have for them.
Correction = Literal["holm", "bonferroni", "fdr_bh", "fdr_by", "none"]
#: An update compares pairs of the best 300 runs only: 2,000 runs have two million pairs.
MOST_RUNS = 300
#: How many (pair, query) cells are worked on at once: some 10 MB; and how many exchanges.
_CELLS, _STEP = 1 << 20, 1 << 10


class PairedT(NamedTuple):
    """Paired t tests of pairs of runs, an array each.

    Attributes:
        difference: the mean of the first's values less the second's.
        effect_size: Cohen's d_z, the mean difference over the standard deviation (n - 1) of the differences:
            Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd ed. 1988, section 2.3.5.
        t: Student's, d_z times the root of the number of queries.
        p: two-sided, as `scipy.stats.ttest_rel`.
        better, worse: the number of queries on which the first has the greater, the smaller value.

    `effect_size`, `t` and `p` are NaN where no test is possible: one query, or a difference that is the same
    on every query; these and `difference` where a value is NaN, or where there is no query.
    """

    difference: Floats
    effect_size: Floats
    t: Floats
    p: Floats
    better: Ints
    worse: Ints


def paired_t(values: Floats, first: Ints, second: Ints) -> PairedT:
    """Return the paired t test over queries of each pair of rows of values, shape (n_runs, n_queries)."""
    from scipy.special import stdtr

    n_queries = values.shape[1]
    difference, effect_size, t, p = np.full((4, len(first)), math.nan)
    better, worse = np.zeros((2, len(first)), np.intp)
    tests = PairedT(difference, effect_size, t, p, better, worse)
    if not n_queries:
        return tests
    step = max(1, _CELLS // n_queries)
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        differences = np.round(values[first[part]] - values[second[part]], TIE_DECIMALS)
        mean = difference[part] = differences.mean(axis=1)
        better[part] = np.count_nonzero(differences > 0, axis=1)
        worse[part] = np.count_nonzero(differences < 0, axis=1)
        if n_queries == 1:
            continue
        # Not so of NaN.
        varies = np.ptp(differences, axis=1) > 0
        deviation = differences[varies].std(axis=1, ddof=1)
        effect_size[part][varies] = mean[varies] / deviation
        t[part][varies] = mean[varies] / (deviation / math.sqrt(n_queries))
        p[part][varies] = 2 * stdtr(n_queries - 1, -np.abs(t[part][varies]))
    return tests


def randomisation_p(values: Floats, first: Ints, second: Ints, permutations: int, seed: int) -> Floats:
    """Return p of Fisher's paired randomisation test of each pair of rows, on the difference of their means.

    Where the two runs do not differ, they may change places on any query. All pairs are tested on the same
    exchanges. Where there are no more ways to exchange than `permutations`, each is tried once and p is
    exact; else p is (1 + exchanges with as great a difference) / (1 + permutations): Phipson & Smyth,
    "Permutation P-values Should Never Be Zero", 2010. It is 1 for runs that are equal on all queries, and NaN
    where a value is NaN, or where there is no query.
    """
    n_queries = values.shape[1]
    if len(set(second.tolist())) < len(set(first.tolist())):
        first, second = second, first
    order = np.argsort(first, kind="stable")
    runs, starts = np.unique(first[order], return_index=True)
    pairs_of = list(zip(runs.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else []
    # So that sums that are equal but for their rounding are equal.
    least = np.abs(values[first].sum(axis=1) - values[second].sum(axis=1)) - 10.0**-TIE_DECIMALS * n_queries
    exact = n_queries < permutations.bit_length()
    count = 2**n_queries if exact else permutations
    reached = np.zeros(len(first), np.int64)
    for signs in _signs(n_queries, count, exact, seed):
        sums = values @ signs
        # A run at a time: what is worked on stays in the processor's cache.
        for run, pairs in pairs_of:
            differences = sums[second[pairs]]
            differences -= sums[run]
            np.abs(differences, out=differences)
            reached[pairs] += np.count_nonzero(differences >= least[pairs, None], axis=1)
    p = reached / count if exact else (1 + reached) / (1 + count)
    return np.where(np.isnan(least) | (n_queries == 0), math.nan, p)


def _signs(n_queries: int, count: int, exact: bool, seed: int) -> Iterator[Floats]:
    """1 and -1 in arrays of shape (n_queries, at most `_STEP`), `count` columns in all."""
    random = np.random.default_rng(seed)
    for start in range(0, count, _STEP):
        columns = min(_STEP, count - start)
        if exact:
            bits = np.arange(start, start + columns) >> np.arange(n_queries)[:, None] & 1
        else:
            bits = random.integers(0, 2, (columns, n_queries), np.int8).T
        yield 1 - 2 * bits.astype(np.float64)


def holm(p: ArrayLike) -> Floats:
    """Holm's adjusted p values: the i-th smallest of m times m - i + 1, at least those before it, at most 1.

    Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6,
    1979. A NaN is a hypothesis that is never rejected: it counts among the m, and stays NaN.
    """
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    adjusted = np.empty_like(values)
    # NaN is last, and whatever comes after a NaN in a running maximum is NaN.
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1)
    return adjusted


def corrected(p: Floats, correction: Correction) -> Floats:
    """Return p values adjusted for their number; NaNs count, and stay NaN.

    "holm" and "bonferroni" hold the family-wise error rate, "fdr_bh" and "fdr_by" the false discovery rate
    (Benjamini & Hochberg 1995, Benjamini & Yekutieli 2001); "none" adjusts nothing.

    Raises:
        ValueError: an unknown correction.
    """
    if correction not in get_args(Correction):
        raise ValueError(f"unknown correction '{correction}'; there are {', '.join(get_args(Correction))}")
    if correction == "none":
        return p
    if correction == "holm":
        return holm(p)
    if correction == "bonferroni":
        return np.minimum(p * len(p), 1)
    from scipy.stats import false_discovery_control

    undefined = np.isnan(p)
    adjusted = false_discovery_control(
        np.where(undefined, 1, p), method="bh" if correction == "fdr_bh" else "by"
    )
    return np.where(undefined, math.nan, adjusted)
