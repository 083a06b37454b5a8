"""Ranks of runs from repeated scores, and their spread over repetitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.values import TIE_DECIMALS

DRAWS = 1000
_SEED, _AT_ONCE, _LEVEL = 35, 50, 0.95
#: Means that differ by no more are ties.
_TIE = 10.0**-TIE_DECIMALS


class RepeatedRanks(NamedTuple):
    """Arrays of shape (runs,).

    Attributes:
        score: the mean of the repetitions' scores.
        rank: from 1; runs with equal scores share the better one.
        deviation: standard deviation of the rank in the draws; runs that tie there have the middle rank.
        best, worst: 95% interval of the rank, by differences.
    """

    score: NDArray[np.float64]
    rank: NDArray[np.int64]
    deviation: NDArray[np.float64]
    best: NDArray[np.int64]
    worst: NDArray[np.int64]


def repeated_ranks(values: NDArray[np.float64]) -> RepeatedRanks:
    """Ranks of the mean of n repetitions, and their spread over samples of n. Queries are fixed.

    For each query, n - 1 of the n repetitions are drawn anew, with replacement: the variance of their mean is
    then that of a mean of n repetitions. A run is ahead of or behind others where a difference is beyond 95%
    of the greatest of all its studentized differences in the draws (Mogstad, Romano, Shaikh and Wilhelm,
    Review of Economic Studies 2024).

    Args:
        values: each repetition's values, shape (repetitions, queries, runs); a run's score is their
            sum over queries.
    """
    from scipy.stats import rankdata

    score = values.mean(axis=0).sum(axis=0)
    drawn = _drawn(values)
    ranks = rankdata(-np.round(drawn, TIE_DECIMALS), axis=1)
    rank = rankdata(-np.round(score, TIE_DECIMALS), method="min").astype(np.int64)
    best, worst = rank.copy(), rank.copy()
    for run in range(len(score)):
        noise = drawn - score - (drawn - score)[:, [run]]
        deviation = np.sqrt(np.mean(noise**2, axis=0))
        # What rounding leaves of two equal runs is no difference.
        scaled = np.abs(noise) / np.where(deviation > _TIE, deviation, np.inf)
        reach = np.quantile(scaled.max(axis=1), _LEVEL) * deviation + _TIE
        best[run] = 1 + (score - score[run] > reach).sum()
        worst[run] = len(score) - (score[run] - score > reach).sum()
    return RepeatedRanks(score, rank, ranks.std(axis=0), best, worst)


def _drawn(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of the draws, shape (DRAWS, runs)."""
    n, n_queries, _ = values.shape
    rng = np.random.default_rng(_SEED)
    parts = []
    for _ in range(DRAWS // _AT_ONCE):
        times = rng.multinomial(n - 1, np.full(n, 1 / n), (_AT_ONCE, n_queries)) / (n - 1)
        parts.append(np.tensordot(times, values.transpose(1, 0, 2), 2))
    return np.concatenate(parts)
