"""How far two leaderboards of the same runs agree: Kendall's tau-b, Spearman's rho, tau_AP.

tau-b has a 95% percentile bootstrap interval over queries: queries are drawn with replacement, the same
for both leaderboards, and the percentiles 2.5 and 97.5 of tau-b over the draws are given. Draws in which
one of the leaderboards ties all runs have no tau-b and are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trecexam.scores.leaderboard import TIE_DECIMALS
from trecexam.scores.tau import tau_ap, tau_b_columns

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Correlation:
    """Agreement of two leaderboards, each coefficient in -1..1.

    NaN stands for an undefined coefficient: fewer than two runs, or all runs tied on one of the sides.

    Attributes:
        n_runs: how many runs both leaderboards have.
        kendall_tau: tau-b.
        spearman_rho: Spearman's rank correlation.
        tau_ap: tau_AP with the official leaderboard as the truth (see `trecexam.scores.tau.tau_ap`).
        tau_low, tau_high: the bootstrap interval of kendall_tau; NaN where there is none.
    """

    n_runs: int
    kendall_tau: float
    spearman_rho: float
    tau_ap: float
    tau_low: float
    tau_high: float


def correlate(rubric: ArrayLike, official: ArrayLike, *, resamples: int = 1000, seed: int = 0) -> Correlation:
    """Correlation of the rubric leaderboard with the official one.

    Leaderboards order runs by their mean over queries, higher is better; means that agree to 12
    decimals are ties.

    Args:
        rubric: values of shape (n_runs, n_queries).
        official: values of the same shape, for the same runs and queries; or, where only a leaderboard
            is known, scores of shape (n_runs,), higher is better (negate ranks).
        resamples: draws of the bootstrap; 0 for no interval.
        seed: of the bootstrap's random numbers; the same seed gives the same interval.

    Raises:
        ValueError: the shapes don't fit, or a value is not finite.
    """
    ours = _values(rubric)
    theirs = _values(official)
    if ours.ndim != 2 or theirs.ndim not in (1, 2) or ours.shape[: theirs.ndim] != theirs.shape:
        raise ValueError(f"rubric values of shape {ours.shape} and official ones of {theirs.shape} don't fit")
    n_runs, n_queries = ours.shape
    if n_queries == 0:
        return Correlation(n_runs, *(math.nan,) * 5)
    official_means = _means(theirs) if theirs.ndim == 2 else np.round(theirs, TIE_DECIMALS)
    tau, rho, ap = _coefficients(_means(ours), official_means)
    if math.isnan(tau) or resamples < 1:
        return Correlation(n_runs, tau, rho, ap, math.nan, math.nan)
    draws = np.random.default_rng(seed).integers(0, n_queries, size=(resamples, n_queries))
    # How often each query is in each draw, then each run's mean over each draw.
    cells = np.bincount((draws + np.arange(resamples)[:, None] * n_queries).ravel(), minlength=draws.size)
    counts = cells.reshape(resamples, n_queries).T.astype(np.float64)
    sampled = [
        np.round(values @ counts / n_queries, TIE_DECIMALS) if values.ndim == 2 else official_means[:, None]
        for values in (ours, theirs)
    ]
    taus = tau_b_columns(*sampled)
    taus = taus[~np.isnan(taus)]
    low, high = np.percentile(taus, (2.5, 97.5)) if taus.size else (math.nan, math.nan)
    return Correlation(n_runs, tau, rho, ap, float(low), float(high))


def per_query_correlations(rubric: ArrayLike, official: ArrayLike) -> tuple[Correlation, ...]:
    """Correlation of the runs' rubric and official values on each query by itself; without intervals.

    Args:
        rubric, official: values of shape (n_runs, n_queries), for the same runs and queries.

    Returns:
        One for each query, in order.

    Raises:
        ValueError: the shapes don't fit, or a value is not finite.
    """
    ours, theirs = _values(rubric), _values(official)
    if ours.ndim != 2 or ours.shape != theirs.shape:
        raise ValueError(f"rubric values of shape {ours.shape} and official ones of {theirs.shape} don't fit")
    ours, theirs = np.round(ours, TIE_DECIMALS), np.round(theirs, TIE_DECIMALS)
    return tuple(
        Correlation(len(a), *_coefficients(a, b), math.nan, math.nan)
        for a, b in zip(ours.T, theirs.T, strict=True)
    )


def _coefficients(rubric: Floats, official: Floats) -> tuple[float, float, float]:
    if len(rubric) < 2 or (rubric == rubric[0]).all() or (official == official[0]).all():
        return math.nan, math.nan, math.nan
    from scipy import stats

    tau: Any = stats.kendalltau(rubric, official)
    rho: Any = stats.spearmanr(rubric, official)
    return float(tau.statistic), float(rho.statistic), tau_ap(official, rubric)


def _means(values: Floats) -> Floats:
    """Means over queries, from exact sums, with rounding errors taken off so that ties are ties."""
    return np.round([math.fsum(row) / len(row) for row in values.tolist()], TIE_DECIMALS)


def _values(values: ArrayLike) -> Floats:
    array = np.asarray(values, np.float64)
    if not np.isfinite(array).all():
        raise ValueError("values to correlate must be finite")
    return array
