"""Probabilities of the order of runs after full judging, and the judgments that would decide it.

Minimal test collections (Carterette, Allan & Sitaraman, SIGIR 2006) take labels as independent. Here their
common errors count, too: what the model has wrong in all queries alike, and in all passages of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.learning import Learned, by_regression
from trecexam.extensions.learn.arithmetic.passages import Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.regression import expected, fits_without

#: Into how many groups queries go at most, each left out once.
GROUPS = 8
#: Joint draws of the runs' means.
DRAWS = 4000
#: From this probability on the order of two runs is decided.
SURE = 0.95

#: Two runs, by their places: the first is said to be the better one.
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Standing:
    """Mean nDCG@k of the runs over the queries after full judging: normal with this mean and covariance.

    Attributes:
        shares: of each query, how much a run's score counts the label of each passage: its discount over
            what the best ranking is expected to have; shape (runs, passages).
        spreads: of each query, the standard deviation of the label of each passage, 0 where it is judged.
        mean: shape (runs,).
        labels: the covariance by what people would say of passages nobody judged; shape (runs, runs).
        model: that by what the model has wrong in all queries alike; shape (runs, runs).
        judged: how many passages are judged.
    """

    shares: tuple[Floats, ...]
    spreads: tuple[Floats, ...]
    mean: Floats
    labels: Floats
    model: Floats
    judged: int

    @property
    def covariance(self) -> Floats:
        """Of all means, shape (runs, runs)."""
        return np.asarray(self.labels + self.model)

    @cached_property
    def above(self) -> Floats:
        """The probability that the row's run is better than the column's; 0.5 on the diagonal."""
        from scipy.special import ndtr

        deviation = np.sqrt(_of_differences(self.covariance))
        difference = self.mean[:, None] - self.mean
        sure = (np.sign(difference) + 1) / 2
        return np.where(deviation > 1e-12, ndtr(difference / np.maximum(deviation, 1e-12)), sure)

    def draw(self, draws: int = DRAWS, seed: int = 0) -> Floats:
        """Joint draws of the means, shape (draws, runs)."""
        values, vectors = np.linalg.eigh(self.covariance)
        noise = np.random.default_rng(seed).standard_normal((draws, len(values)))
        return np.asarray(self.mean + noise * np.sqrt(np.maximum(values, 0)) @ vectors.T)

    def gains(self, pairs: Sequence[Pair]) -> tuple[Floats, ...]:
        """What judging each passage takes off the variance of these pairs' differences, weighted by how
        undecided each pair is: p (1 - p) over its variance. 0 where it is judged.

        For one pair that is the order of minimal test collections' weight times the standard deviation.
        """
        first, second = np.array(pairs).reshape(-1, 2).T
        p, variance = self.above[first, second], _of_differences(self.covariance)[first, second]
        stakes = np.where(variance > 1e-15, p * (1 - p) / np.maximum(variance, 1e-15), 0)
        # The sum over pairs of stake * (share_a - share_b)^2 is a quadratic form of a passage's shares.
        runs, run_index = np.unique(np.concatenate([first, second]), return_inverse=True)
        a, b = run_index[: len(first)], run_index[len(first) :]
        form = np.zeros((len(runs), len(runs)))
        for rows, columns, signed in ((a, a, stakes), (b, b, stakes), (a, b, -stakes), (b, a, -stakes)):
            np.add.at(form, (rows, columns), signed)
        return tuple(
            np.maximum(((form @ of[runs]) * of[runs]).sum(axis=0), 0) * spread**2
            for of, spread in zip(self.shares, self.spreads, strict=True)
        )

    def needed(self, pair: Pair, confidence: float) -> int:
        """The approximate number of judgments, in the order of `gains`, that decide a pair.

        Decided is a pair where the probability of its order is at least `confidence`, above 0.5, if its
        difference stays what it is expected to be. What the model has wrong shrinks with the weight of what
        is not judged.
        """
        from scipy.special import ndtri

        n = len(self.shares)
        weights = np.concatenate([np.abs(of[pair[0]] - of[pair[1]]) for of in self.shares])
        spreads = np.concatenate(self.spreads)
        order = np.argsort(-(weights * spreads), kind="stable")
        counts = int(((weights > 0) & (spreads > 0)).sum())
        if not counts:
            return 0
        open_weight = np.where(spreads > 0, weights, 0)[order]
        left = 1 - np.cumsum(open_weight) / open_weight.sum()
        removed = np.cumsum((weights * spreads)[order] ** 2) / n**2
        labels, model = (float(_of_differences(of)[pair]) for of in (self.labels, self.model))
        share = np.clip(1 - removed / removed[-1], 0, 1)
        variance = labels * share + model * left**2
        difference = abs(float(self.mean[pair[0]] - self.mean[pair[1]]))
        target = (difference / float(ndtri(confidence))) ** 2
        if labels + model <= target:
            return 0
        enough = np.flatnonzero(variance[:counts] <= target)
        return int(enough[0]) + 1 if len(enough) else counts


class Undecided(NamedTuple):
    """Pairs of runs whose order is undecided: the other order has a probability of more than 5%.

    Attributes:
        neighbours: of the `n_neighbours` pairs that are next to each other by expected nDCG.
        pairs: of all `n_pairs`.
    """

    neighbours: int
    n_neighbours: int
    pairs: int
    n_pairs: int


def undecided(standings: Standing) -> Undecided:
    """Counts undecided pairs of runs."""
    order = np.argsort(-standings.mean, kind="stable")
    open_order = standings.above[np.ix_(order, order)] < SURE
    neighbours = np.diag(open_order, 1)
    pairs = open_order[np.triu_indices(len(order), 1)]
    return Undecided(int(neighbours.sum()), len(neighbours), int(pairs.sum()), len(pairs))


def standing(learned: Learned, queries: Sequence[QueryPassages], k: int) -> Standing:
    """The distribution of the runs' mean nDCG@k over these queries after full judging.

    Args:
        learned: from these queries.
    """
    scale, columns = learned.scale, learned.for_runs.columns
    n, n_runs = len(queries), len(queries[0].ranks)
    every = [by_regression(learned, query) for query in queries]
    moments = [_moments(p, query, scale) for p, query in zip(every, queries, strict=True)]
    ideals = [_ideal(p, query.elsewhere, scale, k) for p, query in zip(every, queries, strict=True)]
    shares = [
        _discounted(query, k) / ideal if ideal > 1e-9 else np.zeros((n_runs, len(query.doc_ids)))
        for query, (ideal, _) in zip(queries, ideals, strict=True)
    ]
    scores = np.array([of @ gains for of, (gains, _) in zip(shares, moments, strict=True)])
    labels = np.zeros((n_runs, n_runs))
    for of, (_, spread), score, (ideal, deviation) in zip(shares, moments, scores, ideals, strict=True):
        labels += (of * spread**2) @ of.T
        # What the best ranking has moves all scores of its query alike.
        off = score * (deviation / ideal if ideal > 1e-9 else 0)
        labels += np.outer(off, off)
    means: list[Floats] = []
    outside: dict[int, Floats] = {}
    for out, regression in fits_without(queries, columns, scale, GROUPS):
        refitted = [_moments(regression.probabilities(query), query, scale)[0] for query in queries]
        means.append(np.mean([of @ gains for of, gains in zip(shares, refitted, strict=True)], axis=0))
        outside |= {at: regression.probabilities(queries[at]) for at in np.flatnonzero(out).tolist()}
    model = np.zeros((n_runs, n_runs))
    if len(means) > 1:
        spread_of = np.array(means) - np.mean(means, axis=0)
        model = (len(means) - 1) / len(means) * spread_of.T @ spread_of
    times = _overdispersion(shares, queries, outside, scale)
    return Standing(
        tuple(shares),
        tuple(spread for _, spread in moments),
        scores.mean(axis=0),
        times * labels / n**2,
        model,
        sum(int(query.judged.sum()) for query in queries),
    )


def _moments(probabilities: Floats, query: QueryPassages, scale: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each passage's label; judged passages have their judgment."""
    mean = expected(probabilities, scale)
    square = scale[0] ** 2 + np.diff(scale**2) @ probabilities
    deviation = np.sqrt(np.maximum(square - mean**2, 0))
    return np.where(query.judged, query.judgments, mean), np.where(query.judged, 0.0, deviation)


def _discounted(query: QueryPassages, k: int) -> Floats:
    """1 / log2(rank + 1) of each passage in the first k ranks of each run; shape (runs, passages)."""
    top = query.ranks[:, :k]
    discounted = np.zeros((len(top), len(query.doc_ids) + 1))
    discounts = np.broadcast_to(1 / np.log2(np.arange(top.shape[1]) + 2), top.shape)
    # A rank without a passage, -1, falls into the last column.
    np.add.at(discounted, (np.arange(len(top))[:, None], top), discounts)
    return discounted[:, :-1]


def _ideal(
    probabilities: NDArray[np.float64], elsewhere: Floats, scale: Floats, k: int
) -> tuple[float, float]:
    """Mean of the best ranking's DCG@k, exact, and an upper bound of its standard deviation.

    The i-th best label is at least t exactly if at least i labels are; how many are is a sum of independent
    indicators, whose distribution, cut at k, is built a passage at a time. The deviation takes the steps of
    the scale as fully correlated.

    Args:
        probabilities: of each step, shape (steps, passages); 0 or 1 of judged passages.
    """
    gained = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(k) + 2))])
    mean, deviation = float(scale[0] * gained[-1]), 0.0
    for step, (t, height) in enumerate(zip(scale[1:], np.diff(scale), strict=True)):
        p = probabilities[step]
        count = np.zeros(k + 1)
        count[min(k, int((p >= 1).sum() + (elsewhere >= t).sum()))] = 1
        for probability in p[(p > 0) & (p < 1)]:
            shifted = np.concatenate([[0.0], count[:-1]])
            shifted[-1] += count[-1]
            count = count * (1 - probability) + shifted * probability
        of_step = float(count @ gained)
        mean += height * of_step
        deviation += height * float(np.sqrt(max(0.0, float(count @ gained**2) - of_step**2)))
    return mean, deviation


def _overdispersion(
    shares: Sequence[Floats],
    queries: Sequence[QueryPassages],
    outside: dict[int, Floats],
    scale: Floats,
) -> float:
    """The overdispersion of differences of runs within a query, relative to independent labels; at least 1.

    For judged passages the difference of two runs is predicted by a fit that has not seen the query: squared
    error over variance, both summed over queries and pairs of runs.
    """
    error = variance = 0.0
    for at, probabilities in outside.items():
        query = queries[at]
        judged = query.judged
        unseen = query.hiding(judged)
        mean, deviation = _moments(probabilities, unseen, scale)
        weights, n = shares[at][:, judged], len(shares[at])
        off = weights @ (query.judgments[judged] - mean[judged])
        error += n * float((off**2).sum()) - float(off.sum()) ** 2
        of_labels = deviation[judged] ** 2
        variance += n * float((weights**2 @ of_labels).sum()) - float(weights.sum(axis=0) ** 2 @ of_labels)
    return max(1.0, error / variance) if variance > 1e-12 else 1.0


def _of_differences(covariance: Floats) -> Floats:
    """The variance of the difference of every two runs, shape (runs, runs)."""
    variances = np.diag(covariance)
    return np.asarray(np.maximum(variances[:, None] + variances - 2 * covariance, 0))
