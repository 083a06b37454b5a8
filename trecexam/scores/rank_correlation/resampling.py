"""Resampling of queries for the intervals of rank correlations."""

from __future__ import annotations

import itertools
import math

import numpy as np

from trecexam.scores.rank_correlation.ranks import Floats, Ranks, rankings
from trecexam.scores.values import TIE_DECIMALS

#: Sides of comparisons whose subsets are kept ranked: a few ten megabytes.
_KEPT = 3
#: At least this share of what sets runs apart is assumed to be theirs: else nothing would be left to rank.
_LEAST_SIGNAL = 0.02


class QueryDraws:
    """Draws of queries with the rankings of both sides, cached between comparisons.

    Args:
        resamples: how many subsets of the queries are looked at; fewer where there are no more, and then
            each once. There are half as many samples. 0 for no intervals.
        seed: of the random numbers; the same seed gives the same draws.
    """

    def __init__(self, resamples: int = 300, seed: int = 0) -> None:
        self.resamples = resamples
        self._seed = seed
        self._ranked: dict[tuple[bytes, tuple[int, ...]], tuple[tuple[slice, Ranks], ...]] = {}

    @staticmethod
    def n_deleted(n_queries: int) -> int:
        """The number of queries deleted from each subset: a third, at least one."""
        return max(1, n_queries // 3)

    def subset_rankings(self, values: Floats) -> tuple[tuple[slice, Ranks], ...]:
        """Return the rankings of the runs' means over each subset of the queries, part by part."""
        key = values.tobytes(), values.shape
        if key in self._ranked:
            # The one that was asked for last goes last.
            self._ranked[key] = self._ranked.pop(key)
            return self._ranked[key]
        while len(self._ranked) >= _KEPT:
            del self._ranked[next(iter(self._ranked))]
        self._ranked[key] = ranked_subsets = tuple(rankings(self.subset_means(values)))
        return ranked_subsets

    def sample_errors(self, values: Floats) -> Floats:
        """Return deviations of the runs' means over bootstrap samples of queries, (n_runs, n_samples).

        Deviations from the mean over all n queries, times sqrt(n / (n - 1)): their variance is unbiased.
        """
        n_queries, n_samples = values.shape[1], max(1, self.resamples // 2)
        drawn = np.random.default_rng([self._seed, 1]).integers(0, n_queries, size=(n_samples, n_queries))
        # How often each query is in each sample.
        cells = np.bincount((drawn + np.arange(n_samples)[:, None] * n_queries).ravel(), minlength=drawn.size)
        weights = cells.reshape(n_samples, n_queries).T / n_queries - 1 / n_queries
        errors: Floats = values @ weights * math.sqrt(n_queries / (n_queries - 1))
        return errors

    def subset_means(self, values: Floats) -> Floats:
        """Return the runs' rounded means over each subset of the queries, shape (n_runs, n_subsets)."""
        in_subset = self._subsets(values.shape[1])
        rounded: Floats = np.round(values @ in_subset / in_subset[:, 0].sum(), TIE_DECIMALS)
        return rounded

    def _subsets(self, n_queries: int) -> Floats:
        """1 for each query that is in a subset, else 0; shape (n_queries, n_subsets)."""
        size = self.n_deleted(n_queries)
        if math.comb(n_queries, size) <= self.resamples:
            deleted = np.array(list(itertools.combinations(range(n_queries), size)))
        else:
            keys = np.random.default_rng(self._seed).random((self.resamples, n_queries))
            deleted = np.argpartition(keys, size, axis=1)[:, :size]
        in_subset = np.ones((n_queries, len(deleted)))
        in_subset[deleted.T, np.arange(len(deleted))] = 0
        return in_subset

    def standard_error(self, of_subsets: Floats, n_queries: int) -> Floats:
        """The delete-d jackknife's standard error of figures over subsets (last axis)."""
        deleted = self.n_deleted(n_queries)
        error: Floats = of_subsets.std(axis=-1) * math.sqrt((n_queries - deleted) / deleted)
        return error


def denoised(rubric: Floats, official: Floats) -> tuple[Floats, Floats]:
    """The runs' means on both sides, shrunk to the variance without the queries' noise.

    Means over few queries lie further apart than the runs do over all that might be asked, and agree less
    (or, as both sides have the same queries, more). Along the two axes on which covariance of means C and
    of their noise S are both diagonal, deviations are multiplied by the root of the share that is not noise:
    A = C^1/2 (I - C^-1/2 S C^-1/2)^1/2 C^-1/2, so that A C A' = C - S. These are constrained empirical Bayes
    estimates (Louis, "Estimating a Population of Parameter Values Using Bayes and Empirical Bayes Methods",
    JASA 79, 1984), of two values each. S is of the rest of the values without run and query means.

    Args:
        rubric: values of shape (n_runs, n_queries), at least two of each.
        official: of the same shape; or scores of shape (n_runs,), which have no noise.

    Returns:
        Two arrays of shape (n_runs,), on the scale of the values and centred; scores as far as they go.
    """
    n_runs, n_queries = rubric.shape
    sides = [rubric, official if official.ndim == 2 else np.repeat(official[:, None], n_queries, axis=1)]
    centred = [side - side.mean(axis=0) for side in sides]
    means = np.array([side.mean(axis=1) for side in centred])
    scale = np.sqrt((means**2).sum(axis=1, keepdims=True) / (n_runs - 1))
    left = [
        (side - mean[:, None]) / unit for side, mean, unit in zip(centred, means, scale[:, 0], strict=True)
    ]
    noise = np.array([[np.vdot(a, b) for b in left] for a in left]) / (
        (n_runs - 1) * (n_queries - 1) * n_queries
    )
    spread, axes = np.linalg.eigh((means / scale) @ (means / scale).T / (n_runs - 1))
    # Sides that agree to the last digit have one axis alone.
    used = spread > 1e-9
    root = axes[:, used] * np.sqrt(spread[used])
    whitened = axes[:, used].T / np.sqrt(spread[used])[:, None]
    share, turn = np.linalg.eigh(np.eye(int(used.sum())) - whitened @ noise @ whitened.T)
    signal = turn * np.sqrt(np.clip(share, _LEAST_SIGNAL, 1)) @ turn.T
    a, b = root @ signal @ whitened @ (means / scale) * scale
    return a, b
