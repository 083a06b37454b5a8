"""Agreement of two leaderboards of the same runs: Kendall's tau-b, Spearman's rho, tau_AP, RBO, tau_AP,b,
and tau-b among the runs that are best by the official side.

Each has a 95% interval for what it would be over all queries that might have been asked: the queries are a
sample of those, the runs are fixed, and so is an official leaderboard with ranks only. Over
few queries leaderboards are noisy, and agree less than they would over many. Resampling makes them noisier
still, so the percentiles of a bootstrap, bias-corrected ones too, are below the truth and may miss the
coefficient itself. Here the interval is

    coefficient + min(bias, 0) - t * SE   to   coefficient + max(bias, 0) + t * SE

cut to the coefficient's range, so it always holds the coefficient, and is wider where noise pulled it from.

- SE is the delete-d jackknife's, with a third of the n queries left out, d = n // 3 (Shao & Wu, "A General
  Theory for Jackknife Variance Estimation", Annals of Statistics 17(3), 1989). A coefficient of ranks jumps
  where two runs change places: leaving one query out is not enough for it.
- bias is how much lower coefficients lie over samples of n queries than over all, in a world that is like the
  measured one, but in which the truth is known: a bootstrap whose runs' true means are the measured ones
  without their noise (`rank_correlation.denoised`).
- t is the 97.5% quantile of Student's t with n - 1 degrees of freedom.

Subsets and samples in which one of the leaderboards ties all runs have no coefficients and are left out.
There is no interval where the runs have fewer than `MIN_DISTINCT` distinct values on a side: the
coefficient can take a few values only, and resampling says nothing about the others.
How often these intervals hold the truth: tests/benchmarks/results/intervals.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trecexam.scores.paired_tests import MOST_RUNS
from trecexam.scores.rank_correlation import (
    DEFAULT_P,
    Floats,
    QueryDraws,
    Ranks,
    checked,
    denoised,
    kendall_tau,
    means,
    official_means,
    pearson_r,
    ranked,
    rbo_columns,
    spearman_rho,
    tau_ap_b_columns,
    tau_ap_columns,
    tau_gap_columns,
    top_tau_columns,
)
from trecexam.scores.values import TIE_DECIMALS

#: With fewer queries there is no interval: it would be nearly the whole range, and still miss too often.
MIN_QUERIES = 5
#: With fewer distinct values of the runs on a side there is no interval.
MIN_DISTINCT = 5
#: How many of the best runs Kendall's tau is also of.
TOPS = (10, 15, 20)
#: The coefficients that have intervals, in the order of the arrays.
COEFFICIENTS = (
    *("kendall_tau", "spearman_rho", "tau_ap", "rbo", "tau_ap_b"),
    *("kendall_at_10", "kendall_at_15", "kendall_at_20"),
)
_LOWEST = np.array([0.0 if name == "rbo" else -1.0 for name in COEFFICIENTS])


class Coefficient(NamedTuple):
    """A correlation coefficient with its 95% interval.

    Attributes:
        value: RBO in 0..1, others in -1..1; NaN where undefined: fewer than two runs, or all runs tied on a
            side.
        low, high: the interval, which the value is in; NaN if missing: fewer than `MIN_QUERIES` queries, more
            than `MOST_RUNS` runs, fewer than `MIN_DISTINCT` distinct values of the runs on a side, or
            leaderboards that tie all runs whenever queries are left out.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Correlation:
    """Agreement of two leaderboards.

    Attributes:
        n_runs: how many runs both leaderboards have.
        kendall_tau: tau-b.
        spearman_rho: Spearman's rank correlation.
        tau_ap: tau_AP with the official leaderboard as the truth (see `rank_correlation`).
        rbo: rank-biased overlap (see `rank_correlation`); two unrelated leaderboards don't have 0.
        tau_ap_b: tau_AP,b, which knows no truth.
        kendall_at_10, kendall_at_15, kendall_at_20: tau-b among so many best runs by the official leaderboard
            and those tied with the last of them; NaN where there are fewer runs. For their intervals,
            distinct values are counted among these runs.
        pearson_r, tau_gap: of the scores themselves, without intervals: Pearson's correlation, and
            `rank_correlation.tau_gap_columns` with the official leaderboard as the truth; NaN where only
            ranks are known on the official side.
    """

    n_runs: int
    kendall_tau: Coefficient
    spearman_rho: Coefficient
    tau_ap: Coefficient
    rbo: Coefficient
    tau_ap_b: Coefficient
    kendall_at_10: Coefficient
    kendall_at_15: Coefficient
    kendall_at_20: Coefficient
    pearson_r: float
    tau_gap: float

    @property
    def coefficients(self) -> tuple[Coefficient, ...]:
        """The coefficients that have intervals, in the order of `COEFFICIENTS`."""
        return tuple(getattr(self, name) for name in COEFFICIENTS)


def correlate(
    rubric: ArrayLike,
    official: ArrayLike,
    *,
    rbo_p: float = DEFAULT_P,
    draws: QueryDraws | None = None,
    ranks: bool = False,
) -> Correlation:
    """Return the correlation of the rubric leaderboard with the official one.

    Leaderboards order runs by their mean over queries, higher is better; means that agree to 12
    decimals are ties.

    Args:
        rubric: values of shape (n_runs, n_queries).
        official: values of the same shape, for the same runs and queries; or, where only a leaderboard
            is known, scores of shape (n_runs,), higher is better (negate ranks).
        draws: the subsets of the queries that intervals are made of, which several comparisons can share.
        ranks: official is ranks, negated, so that there is no correlation of scores.

    Raises:
        ValueError: the shapes don't fit, a value is not finite, or rbo_p is not between 0 and 1.
    """
    rubric_values, official_values = checked(rubric, official)
    n_runs, n_queries = rubric_values.shape
    if n_queries == 0:
        return _correlation(n_runs, np.full(len(COEFFICIENTS), np.nan), [math.nan] * 2)
    ours, truth = means(rubric_values), official_means(official_values)
    values = coefficients(ours[:, None], truth[:, None], rbo_p)[:, 0]
    of_scores = [math.nan] * 2 if ranks else _of_scores(ours[:, None], truth[:, None])[0]
    draws = draws or QueryDraws()
    enough = _enough_distinct(ours, truth)
    few = n_queries < MIN_QUERIES or not enough[0]
    if math.isnan(values[0]) or few or n_runs > MOST_RUNS or draws.resamples < 1:
        return _correlation(n_runs, values, of_scores)
    error, bias = error_and_bias(rubric_values, official_values, draws, rbo_p)
    ends_of = np.where(enough, ends(values, error, bias, n_queries), np.nan)
    return _correlation(n_runs, values, of_scores, *ends_of)


def n_distinct(values: ArrayLike) -> int:
    """Return the number of distinct means of a side of `correlate`, to 12 decimals."""
    return len(np.unique(official_means(np.asarray(values, np.float64))))


def _enough_distinct(rubric: Floats, official: Floats) -> NDArray[np.bool_]:
    """Return, for each coefficient, whether its runs have enough distinct values on both sides."""
    enough = np.full(len(COEFFICIENTS), _are_distinct(rubric, official))
    for at, k in enumerate(TOPS, len(COEFFICIENTS) - len(TOPS)):
        if k <= len(official):
            best = official >= np.sort(official)[-k]
            enough[at] = _are_distinct(rubric[best], official[best])
    return enough


def _are_distinct(*sides: Floats) -> bool:
    return min(len(np.unique(side)) for side in sides) >= MIN_DISTINCT


def _correlation(n_runs: int, values: Floats, of_scores: Sequence[float], *ends: Floats) -> Correlation:
    """A correlation from the coefficients, those of scores, and the lower and upper ends of intervals."""
    triples = zip(*map(_floats, (values, *ends)), strict=True)
    by_name = {name: Coefficient(*each) for name, each in zip(COEFFICIENTS, triples, strict=True)}
    return Correlation(n_runs, **by_name, pearson_r=of_scores[0], tau_gap=of_scores[1])


def _floats(values: Floats) -> list[float]:
    """The values as floats, with NaN as math.nan, so that equal correlations compare equal."""
    return [math.nan if math.isnan(value) else value for value in values.tolist()]


def per_query_correlations(
    rubric: ArrayLike, official: ArrayLike, *, rbo_p: float = DEFAULT_P
) -> tuple[Correlation, ...]:
    """Return the correlation on each query, without intervals; arguments and errors as of `correlate`."""
    rubric_values, official_values = (
        np.round(side, TIE_DECIMALS) for side in checked(rubric, official, ranks=False)
    )
    return tuple(
        _correlation(len(rubric_values), values, of_scores)
        for values, of_scores in zip(
            coefficients(rubric_values, official_values, rbo_p).T,
            _of_scores(rubric_values, official_values),
            strict=True,
        )
    )


def _of_scores(rubric: Floats, official: Floats) -> list[list[float]]:
    """Pearson's r and tau_GAP of each column; NaN if a side ties all runs."""
    if len(rubric) < 2:
        return [[math.nan] * 2 for _ in range(rubric.shape[1])]
    both = np.stack([pearson_r(rubric, official), tau_gap_columns(official, rubric)], axis=1)
    both[np.isnan(both).any(axis=1)] = np.nan
    return [*map(_floats, both)]


def error_and_bias(
    rubric: Floats, official: Floats, draws: QueryDraws, rbo_p: float = DEFAULT_P
) -> tuple[Floats, Floats]:
    """Return standard errors and bias of the `COEFFICIENTS`, NaN where too many runs are tied."""
    judged = official.ndim == 2
    rubric_ranks = draws.subset_rankings(rubric)
    official_ranks: Iterable[tuple[slice, Ranks]] = (
        draws.subset_rankings(official)
        if judged
        else itertools.repeat((slice(1), Ranks.of(official_means(official)[:, None])))
    )
    pairs = (
        (part, ours, truth) for (part, ours), (_, truth) in zip(rubric_ranks, official_ranks, strict=False)
    )
    of_subsets = _of_rankings(rubric_ranks[-1][0].stop, pairs, rbo_p)
    rubric_centre, official_centre = (side[:, None] for side in denoised(rubric, official))
    rubric_samples = rubric_centre + draws.sample_errors(rubric)
    official_samples = official_centre + (draws.sample_errors(official) if judged else 0)
    of_samples = coefficients(rubric_samples, official_samples, rbo_p)
    at_centre = coefficients(rubric_centre, official_centre, rbo_p)[:, 0]
    error, bias = np.full((2, len(COEFFICIENTS)), math.nan)
    for at, (subsets, samples) in enumerate(zip(of_subsets, of_samples, strict=True)):
        subsets, samples = subsets[~np.isnan(subsets)], samples[~np.isnan(samples)]
        if subsets.size and samples.size:
            error[at] = draws.standard_error(subsets, rubric.shape[1])
            bias[at] = at_centre[at] - samples.mean()
    return error, bias


def ends(values: Floats, error: Floats, bias: Floats, n_queries: int) -> tuple[Floats, Floats]:
    """The bounds of the coefficients' 95% intervals; NaN if error or bias is."""
    half = half_width(error, n_queries)
    both = values + np.minimum(bias, 0) - half, values + np.maximum(bias, 0) + half
    low, high = np.clip(both, _LOWEST, 1.0)
    return low, high


def half_width(error: Floats, n_queries: int) -> Floats:
    """Half the width of a 95% interval over n queries with this standard error, by Student's t."""
    from scipy.special import stdtrit

    half: Floats = stdtrit(n_queries - 1, 0.975) * error
    return half


def coefficients(rubric: Floats, official: Floats, rbo_p: float = DEFAULT_P) -> Floats:
    """Return the coefficients of each column of means, shape (coefficients, n_columns); NaN if undefined.

    A single column of a side goes with each of the other side's.
    """
    a, b = np.round(rubric, TIE_DECIMALS), np.round(official, TIE_DECIMALS)
    return _of_rankings(max(a.shape[1], b.shape[1]), ranked(a, b) if len(a) > 1 else (), rbo_p)


def _of_rankings(n_columns: int, pairs: Iterable[tuple[slice, Ranks, Ranks]], rbo_p: float) -> Floats:
    coefficients = np.full((len(COEFFICIENTS), n_columns), np.nan)
    for part, rubric_ranks, official_ranks in pairs:
        coefficients[:, part] = (
            kendall_tau(rubric_ranks, official_ranks),
            spearman_rho(rubric_ranks, official_ranks),
            tau_ap_columns(official_ranks, rubric_ranks),
            rbo_columns(rubric_ranks, official_ranks, rbo_p),
            tau_ap_b_columns(rubric_ranks, official_ranks),
            *top_tau_columns(official_ranks, rubric_ranks, TOPS),
        )
    coefficients[:, np.isnan(coefficients[0])] = np.nan
    return coefficients
