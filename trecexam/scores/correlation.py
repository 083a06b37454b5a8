"""How far two leaderboards of the same runs agree: Kendall's tau-b, Spearman's rho, tau_AP, RBO.

Each has a 95% percentile bootstrap interval over queries: queries are drawn with replacement, the same
for both leaderboards, and the percentiles 2.5 and 97.5 of the coefficient over the draws are given. Draws
in which one of the leaderboards ties all runs have no coefficients and are left out.

A draw holds some 63% of the queries, so its coefficients tend to lie below those of all queries: with few
queries an interval reaches far down, and the coefficient may even lie above it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from trecexam.scores.rank_correlation.ranks import (
    Floats,
    Ranks,
    checked,
    means,
    official_means,
    ranked,
    rankings,
)
from trecexam.scores.rank_correlation.rbo import DEFAULT_P, rbo_columns
from trecexam.scores.rank_correlation.tau import kendall_tau, spearman_rho, tau_ap_columns
from trecexam.scores.ties import TIE_DECIMALS

#: Sides of comparisons whose draws are kept ranked: a few ten megabytes.
_KEPT = 3


@dataclass(frozen=True)
class Correlation:
    """Agreement of two leaderboards; RBO is in 0..1, the other coefficients in -1..1.

    NaN stands for an undefined coefficient: fewer than two runs, or all runs tied on one of the sides.

    Attributes:
        n_runs: how many runs both leaderboards have.
        kendall_tau: tau-b.
        spearman_rho: Spearman's rank correlation.
        tau_ap: tau_AP with the official leaderboard as the truth (see `rank_correlation.tau`).
        tau_low, tau_high: the bootstrap interval of kendall_tau; NaN where there is none.
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
    resamples: int = 1000,
    seed: int = 0,
    rbo_p: float = DEFAULT_P,
    bootstrap: Bootstrap | None = None,
) -> Correlation:
    """Correlation of the rubric leaderboard with the official one.

    Leaderboards order runs by their mean over queries, higher is better; means that agree to 12
    decimals are ties.

    Args:
        rubric: values of shape (n_runs, n_queries).
        official: values of the same shape, for the same runs and queries; or, where only a leaderboard
            is known, scores of shape (n_runs,), higher is better (negate ranks).
        resamples: draws of the bootstrap; 0 for no interval.
        seed: of the bootstrap's random numbers; the same seed gives the same interval.
        rbo_p: the persistence of RBO, between 0 and 1.
        bootstrap: in place of resamples and seed, where several comparisons share draws.

    Raises:
        ValueError: the shapes don't fit, a value is not finite, or rbo_p is not between 0 and 1.
    """
    rubric_values, official_values = checked(rubric, official)
    n_runs, n_queries = rubric_values.shape
    if n_queries == 0:
        return Correlation(n_runs)
    truth = official_means(official_values)[:, None]
    tau, rho, ap, rbo = _coefficients(means(rubric_values)[:, None], truth, rbo_p)[:, 0].tolist()
    if math.isnan(tau) or (bootstrap.resamples if bootstrap else resamples) < 1:
        return Correlation(n_runs, tau, rho, ap, rbo=rbo)
    draws = bootstrap or Bootstrap(resamples, seed)
    of_truth = draws.rankings(official_values) if official_values.ndim == 2 else Ranks.of(truth)
    drawn = _of_rankings(draws.resamples, _paired(draws.rankings(rubric_values), of_truth), rbo_p)
    drawn = drawn[:, ~np.isnan(drawn[0])]
    ends = np.percentile(drawn, (2.5, 97.5), axis=1) if drawn.size else np.full((2, 4), math.nan)
    (tau_low, tau_high), *others = ends.T.tolist()
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


class Bootstrap:
    """Draws of queries, and the rankings of sides in them: those of one comparison serve the next.

    Args:
        resamples: how many draws; 0 for none, and no intervals.
        seed: of the random numbers; the same seed gives the same draws.
    """

    def __init__(self, resamples: int = 1000, seed: int = 0) -> None:
        self.resamples = resamples
        self._seed = seed
        self._ranked: dict[tuple[bytes, tuple[int, ...]], tuple[tuple[slice, Ranks], ...]] = {}

    def rankings(self, values: Floats) -> tuple[tuple[slice, Ranks], ...]:
        """The rankings of the runs' means over each draw, part by part.

        Args:
            values: of shape (n_runs, n_queries).
        """
        key = hashlib.blake2b(np.ascontiguousarray(values).data).digest(), values.shape
        if key in self._ranked:
            # The one that was asked for last goes last.
            self._ranked[key] = self._ranked.pop(key)
            return self._ranked[key]
        while len(self._ranked) >= _KEPT:
            del self._ranked[next(iter(self._ranked))]
        n_queries = values.shape[1]
        draws = np.random.default_rng(self._seed).integers(0, n_queries, size=(self.resamples, n_queries))
        # How often each query is in each draw, then each run's mean over each draw.
        starts = np.arange(self.resamples)[:, None] * n_queries
        cells = np.bincount((draws + starts).ravel(), minlength=draws.size)
        counts = cells.reshape(self.resamples, n_queries).T.astype(np.float64)
        ranked_draws = tuple(rankings(np.round(values @ counts / n_queries, TIE_DECIMALS)))
        self._ranked[key] = ranked_draws
        return ranked_draws


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
