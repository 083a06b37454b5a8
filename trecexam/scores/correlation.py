"""How far two leaderboards of the same runs agree: Kendall's tau-b, Spearman's rho, tau_AP, RBO.

Each has a 95% interval for what it would be over all queries that might have been asked: the queries are a
sample of those, the runs are fixed, and so is an official leaderboard of which only the ranks are known. Over
few queries leaderboards are noisy, and agree less than they would over many. Resampling makes them noisier
still, so the percentiles of a bootstrap, bias-corrected ones too, lie below the truth and may miss the
coefficient itself. Here the interval is

    coefficient + min(bias, 0) - t * SE   to   coefficient + max(bias, 0) + t * SE

cut to the coefficient's range, so it always holds the coefficient, and is wider where noise pulled it from.

- SE is the delete-d jackknife's, with a third of the n queries left out, d = n // 3 (Shao & Wu, "A General
  Theory for Jackknife Variance Estimation", Annals of Statistics 17(3), 1989). A coefficient of ranks jumps
  where two runs change places: leaving one query out is not enough for it.
- bias is how much lower coefficients lie over samples of n queries than over all, in a world that is like the
  measured one, but in which the truth is known: a bootstrap whose runs' true means are the measured ones
  without their noise (`rank_correlation.resampling.denoised`).
- t is the 97.5% quantile of Student's t with n - 1 degrees of freedom.

Subsets and samples in which one of the leaderboards ties all runs have no coefficients and are left out.
How often these intervals hold the truth: tests/benchmarks/results/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trecexam.scores.paired_tests import MOST_RUNS
from trecexam.scores.rank_correlation.ranks import (
    Floats,
    Ranks,
    checked,
    means,
    official_means,
    ranked,
)
from trecexam.scores.rank_correlation.rbo import DEFAULT_P, rbo_columns
from trecexam.scores.rank_correlation.resampling import QueryDraws, denoised
from trecexam.scores.rank_correlation.tau import kendall_tau, spearman_rho, tau_ap_columns
from trecexam.scores.ties import TIE_DECIMALS

#: With fewer queries there is no interval: it would be nearly the whole range, and still miss too often.
MIN_QUERIES = 5
#: The ranges of tau-b, rho, tau_AP and RBO.
_LOWEST, _HIGHEST = np.array([-1.0, -1.0, -1.0, 0.0]), np.ones(4)


@dataclass(frozen=True)
class Correlation:
    """Agreement of two leaderboards; RBO is in 0..1, the other coefficients in -1..1.

    NaN stands for an undefined coefficient: fewer than two runs, or all runs tied on one of the sides.

    Attributes:
        n_runs: how many runs both leaderboards have.
        kendall_tau: tau-b.
        spearman_rho: Spearman's rank correlation.
        tau_ap: tau_AP with the official leaderboard as the truth (see `rank_correlation.tau`).
        tau_low, tau_high: the 95% interval of kendall_tau, which it lies in; NaN where there is none: fewer
            than `MIN_QUERIES` queries, more than `MOST_RUNS` runs, or leaderboards that tie all runs whenever
            queries are left out.
        rbo: rank-biased overlap (see `rank_correlation.rbo`); two unrelated leaderboards don't have 0.
        rho_low, rho_high, ap_low, ap_high, rbo_low, rbo_high: the intervals of the others.
    """

    n_runs: int
    kendall_tau: float = math.nan
    spearman_rho: float = math.nan
    tau_ap: float = math.nan
    tau_low: float = math.nan
    tau_high: float = math.nan
    rbo: float = math.nan
    rho_low: float = math.nan
    rho_high: float = math.nan
    ap_low: float = math.nan
    ap_high: float = math.nan
    rbo_low: float = math.nan
    rbo_high: float = math.nan


def correlate(
    rubric: ArrayLike,
    official: ArrayLike,
    *,
    resamples: int = 300,
    seed: int = 0,
    rbo_p: float = DEFAULT_P,
    draws: QueryDraws | None = None,
    label_error: Floats | float = 0.0,
) -> Correlation:
    """Correlation of the rubric leaderboard with the official one.

    Leaderboards order runs by their mean over queries, higher is better; means that agree to 12
    decimals are ties.

    Args:
        rubric: values of shape (n_runs, n_queries).
        official: values of the same shape, for the same runs and queries; or, where only a leaderboard
            is known, scores of shape (n_runs,), higher is better (negate ranks).
        resamples: how many subsets of the queries the interval is made of; 0 for no interval.
        seed: of the random numbers; the same seed gives the same interval.
        rbo_p: the persistence of RBO, between 0 and 1.
        draws: in place of resamples and seed, where several comparisons share them.
        label_error: standard errors of the four by labels that are uncertain, which the intervals hold, too;
            independent of the queries'.

    Raises:
        ValueError: the shapes don't fit, a value is not finite, or rbo_p is not between 0 and 1.
    """
    rubric_values, official_values = checked(rubric, official)
    n_runs, n_queries = rubric_values.shape
    if n_queries == 0:
        return Correlation(n_runs)
    truth = official_means(official_values)[:, None]
    values = _coefficients(means(rubric_values)[:, None], truth, rbo_p)[:, 0]
    tau, rho, ap, rbo = values.tolist()
    draws = draws or QueryDraws(resamples, seed)
    few = n_queries < MIN_QUERIES or n_runs > MOST_RUNS
    if math.isnan(tau) or few or draws.resamples < 1:
        return Correlation(n_runs, tau, rho, ap, rbo=rbo)
    error, bias = error_and_bias(rubric_values, official_values, draws, rbo_p)
    low, high = ends(values, np.hypot(error, label_error), bias, n_queries)
    (tau_low, tau_high), *others = zip(low.tolist(), high.tolist(), strict=True)
    return Correlation(
        n_runs, tau, rho, ap, tau_low, tau_high, rbo, *(end for pair in others for end in pair)
    )


def per_query_correlations(
    rubric: ArrayLike, official: ArrayLike, *, rbo_p: float = DEFAULT_P
) -> tuple[Correlation, ...]:
    """Correlation of the runs' rubric and official values on each query by itself; without intervals.

    Args:
        rubric, official: values of shape (n_runs, n_queries), for the same runs and queries.
        rbo_p: the persistence of RBO.

    Returns:
        One for each query, in order.

    Raises:
        ValueError: as `correlate`.
    """
    rubric_values, official_values = (
        np.round(side, TIE_DECIMALS) for side in checked(rubric, official, ranks=False)
    )
    return tuple(
        Correlation(len(rubric_values), tau, rho, ap, rbo=rbo)
        for tau, rho, ap, rbo in _coefficients(rubric_values, official_values, rbo_p).T.tolist()
    )


def error_and_bias(
    rubric: Floats, official: Floats, draws: QueryDraws, rbo_p: float = DEFAULT_P
) -> tuple[Floats, Floats]:
    """Standard errors of tau-b, rho, tau_AP and RBO, and how far they lie below the truth; see the module.

    Args:
        rubric, official: as `correlate` takes them, of at least two queries, with a defined tau.

    Returns:
        Two arrays of shape (4,); NaN where too many runs are tied.
    """
    judged = official.ndim == 2
    rubric_ranks = draws.subset_rankings(rubric)
    official_ranks = (
        draws.subset_rankings(official) if judged else Ranks.of(official_means(official)[:, None])
    )
    of_subsets = _of_rankings(rubric_ranks[-1][0].stop, _paired(rubric_ranks, official_ranks), rbo_p)
    rubric_centre, official_centre = (side[:, None] for side in denoised(rubric, official))
    rubric_samples = rubric_centre + draws.sample_errors(rubric)
    official_samples = official_centre + (draws.sample_errors(official) if judged else 0)
    of_samples = coefficients(rubric_samples, official_samples, rbo_p)
    at_centre = coefficients(rubric_centre, official_centre, rbo_p)[:, 0]
    of_subsets, of_samples = (each[:, ~np.isnan(each[0])] for each in (of_subsets, of_samples))
    if not of_subsets.size or not of_samples.size:
        return np.full(4, math.nan), np.full(4, math.nan)
    return draws.standard_error(of_subsets, rubric.shape[1]), at_centre - of_samples.mean(axis=1)


def ends(values: Floats, error: Floats, bias: Floats, n_queries: int) -> tuple[Floats, Floats]:
    """The ends of the 95% intervals of tau-b, rho, tau_AP and RBO; NaN where the error or the bias is."""
    half = half_width(error, n_queries)
    both = values + np.minimum(bias, 0) - half, values + np.maximum(bias, 0) + half
    low, high = np.clip(both, _LOWEST, _HIGHEST)
    return low, high


def half_width(error: Floats, n_queries: int) -> Floats:
    """Of the 95% interval of a figure over n queries that has this standard error, by Student's t."""
    from scipy.special import stdtrit

    half: Floats = stdtrit(n_queries - 1, 0.975) * error
    return half


def coefficients(rubric: Floats, official: Floats, rbo_p: float = DEFAULT_P) -> Floats:
    """tau-b, rho, tau_AP and RBO of means, column by column: shape (4, n_columns); NaN where undefined.

    Args:
        rubric, official: shape (n_runs, n_columns); one column alone stands for each of the other side's.
    """
    return _coefficients(np.round(rubric, TIE_DECIMALS), np.round(official, TIE_DECIMALS), rbo_p)


def _paired(
    rubric: tuple[tuple[slice, Ranks], ...], official: tuple[tuple[slice, Ranks], ...] | Ranks
) -> Iterator[tuple[slice, Ranks, Ranks]]:
    for number, (part, rubric_ranks) in enumerate(rubric):
        yield part, rubric_ranks, official if isinstance(official, Ranks) else official[number][1]


def _coefficients(rubric: Floats, official: Floats, rbo_p: float) -> Floats:
    """tau-b, rho, tau_AP and RBO column by column, shape (4, n_columns); NaN where they are undefined."""
    n_columns = max(rubric.shape[1], official.shape[1])
    return _of_rankings(n_columns, ranked(rubric, official) if len(rubric) > 1 else (), rbo_p)


def _of_rankings(n_columns: int, pairs: Iterable[tuple[slice, Ranks, Ranks]], rbo_p: float) -> Floats:
    coefficients = np.full((4, n_columns), np.nan)
    for part, rubric_ranks, official_ranks in pairs:
        coefficients[:, part] = (
            kendall_tau(rubric_ranks, official_ranks),
            spearman_rho(rubric_ranks, official_ranks),
            tau_ap_columns(official_ranks, rubric_ranks),
            rbo_columns(rubric_ranks, official_ranks, rbo_p),
        )
    coefficients[:, np.isnan(coefficients[0])] = np.nan
    return coefficients
