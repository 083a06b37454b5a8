"""Ranks of runs from repeated scores, and how far another judging would move them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.values import TIE_DECIMALS

DRAWS = 1000
_SEED, _AT_ONCE = 35, 50
_LEVEL = 0.95
#: Means that differ by no more are ties.
_TIE = 10.0**-TIE_DECIMALS


class RepeatedRanks(NamedTuple):
    """Of each run, arrays of shape (runs,).

    Attributes:
        score: the mean of the times' scores.
        rank: from 1; runs with equal scores share the better one.
        deviation: standard deviation of the rank in the draws; runs that tie there have the middle rank.
        low, high: 95% interval of the rank, by differences.
    """

    score: NDArray[np.float64]
    rank: NDArray[np.int64]
    deviation: NDArray[np.float64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def repeated_ranks(values: NDArray[np.float64]) -> RepeatedRanks:
    """Ranks of the mean of n times, and their spread over judgings of n times each.

    For each query, n - 1 of the n times are drawn anew, with replacement: the variance of their mean is then
    that of a mean of n times. Queries are fixed. The draws have one seed.

    Args:
        values: each time's values, shape (times, queries, runs); a run's score is their sum over queries.
    """
    from scipy.stats import rankdata

    score = values.mean(axis=0).sum(axis=0)
    drawn = _drawn(values)
    ranks = rankdata(-np.round(drawn, TIE_DECIMALS), axis=1)
    rank = rankdata(-np.round(score, TIE_DECIMALS), method="min").astype(np.int64)
    low, high = _by_differences(score, drawn)
    return RepeatedRanks(score, rank, ranks.std(axis=0), low, high)


def _drawn(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of the draws, shape (DRAWS, runs)."""
    n, n_queries, _ = values.shape
    by_query = values.transpose(1, 0, 2)
    rng = np.random.default_rng(_SEED)
    parts = []
    for _ in range(DRAWS // _AT_ONCE):
        times = rng.multinomial(n - 1, np.full(n, 1 / n), (_AT_ONCE, n_queries)) / (n - 1)
        parts.append(np.tensordot(times, by_query, 2))
    return np.concatenate(parts)


def _by_differences(
    score: NDArray[np.float64], drawn: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and last rank of each run: it is behind or ahead where a difference is beyond chance.

    Beyond 95% of the greatest of all its studentized differences (Mogstad, Romano, Shaikh and Wilhelm, Review
    of Economic Studies 2024).
    """
    noise = drawn - score
    low, high = [], []
    for run in range(len(score)):
        apart = noise - noise[:, [run]]
        deviation = np.sqrt(np.mean(apart**2, axis=0))
        # What rounding leaves of two equal runs is no difference.
        scaled = np.abs(apart) / np.where(deviation > _TIE, deviation, np.inf)
        reach = np.quantile(scaled.max(axis=1), _LEVEL) * deviation + _TIE
        ahead = score - score[run]
        low.append(1 + int((ahead > reach).sum()))
        high.append(len(score) - int((ahead < -reach).sum()))
    return np.array(low, np.int64), np.array(high, np.int64)
