"""Fit of a model on a track's judgments, and prediction of labels of unjudged passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.learn.arithmetic.passages import Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.process import Kernel, carried, carried_from_others, choose_kernel
from trecexam.extensions.learn.arithmetic.regression import (
    LEAST,
    Regression,
    adds,
    choose_columns,
    expected,
    fit_regression,
    scale_of,
)


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted model.

    Attributes:
        regression: the probability of each step of the scale, by the features.
        for_runs: the same with an intercept for each query, for leaderboards.
        kernel: carries judgments to similar passages, for labels; None if it does not help.
        cuts: lowest gain for the label of each step.
        n_judgments: number of judgments in the fit.
    """

    regression: Regression
    for_runs: Regression
    kernel: Kernel | None
    cuts: Floats
    n_judgments: int

    @property
    def scale(self) -> Floats:
        """Return the labels, increasing."""
        return self.regression.scale


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predictions for a query's passages.

    Attributes:
        gains: the expected label, shape (passages,).
        deviations: standard deviation of a person's label; 0 for judged passages.
        labels: labels by the cuts; judgments of judged passages.
        confidences: probability of each label.
    """

    gains: Floats
    deviations: Floats
    labels: Floats
    confidences: Floats

    def rows(self) -> Iterator[tuple[float, float, int, float]]:
        """Yield gain, deviation, label and confidence of each passage."""
        columns = (self.gains, self.deviations, self.labels.astype(int), self.confidences)
        return zip(*(column.tolist() for column in columns), strict=True)


def fit(queries: Sequence[QueryPassages]) -> Learned:
    """Fit regressions, kernel and cuts on the judgments of these queries.

    The Gaussian process is used if it lowers the leave-one-out squared error of gains by more than one
    standard error over queries.

    Raises:
        ValueError: no judgments, or not two different ones.
    """
    scale = scale_of(queries)
    judged = [query for query in queries if query.judged.any()]
    columns, predicted = choose_columns(judged, scale)
    regression = fit_regression(queries, columns, scale)
    gains = [
        expected(of_query, scale)[query.judged] for query, of_query in zip(judged, predicted, strict=True)
    ]
    labels = [query.judgments[query.judged] for query in judged]
    residuals = [
        (query.vectors[query.judged], of_query - gain)
        for query, of_query, gain in zip(judged, labels, gains, strict=True)
    ]
    kernel = choose_kernel(residuals)
    with_neighbours = [
        gain + carried_from_others(kernel, *of_query) for gain, of_query in zip(gains, residuals, strict=True)
    ]
    less = [
        float(((label - gain) ** 2 - (label - other) ** 2).sum())
        for label, gain, other in zip(labels, gains, with_neighbours, strict=True)
    ]
    is_better = adds(np.array(less))
    unseen_gains = np.concatenate(with_neighbours if is_better else gains)
    cuts = fit_cuts(unseen_gains, np.concatenate(labels), scale)
    for_runs = fit_regression(queries, columns, scale, by_query=True)
    return Learned(regression, for_runs, kernel if is_better else None, cuts, sum(map(len, labels)))


def predict(learned: Learned, query: QueryPassages) -> Prediction:
    """Predict labels of a query's passages from the fitted model and the query's judgments."""
    scale, is_judged = learned.scale, query.judged
    reached = query.judgments >= scale[1:, None]
    p = learned.regression.probabilities(query)
    if learned.kernel is not None and is_judged.any():
        carry = carried(learned.kernel, query.vectors[is_judged], query.vectors)
        p = p + (reached[:, is_judged] - p[:, is_judged]) @ carry.T
    p = np.where(is_judged, reached, np.minimum.accumulate(np.clip(p, LEAST, 1 - LEAST), axis=0))
    gains = expected(p, scale)
    labels = np.where(is_judged, query.judgments, labels_of(gains, learned.cuts, scale))
    of_label = -np.diff(np.vstack([np.ones(p.shape[1]), p, np.zeros(p.shape[1])]), axis=0)
    variances = (of_label * (scale[:, None] - gains) ** 2).sum(axis=0)
    return Prediction(
        np.where(is_judged, query.judgments, gains),
        np.where(is_judged, 0.0, np.sqrt(variances)),
        labels,
        of_label[np.searchsorted(scale, labels), np.arange(len(labels))],
    )


def by_regression(learned: Learned, query: QueryPassages) -> Floats:
    """Return the probabilities of each step, without the Gaussian process, for leaderboards.

    Returns:
        Shape (steps, passages); 0 or 1 for judged passages.
    """
    reached = query.judgments >= learned.scale[1:, None]
    return np.asarray(np.where(query.judged, reached, learned.for_runs.probabilities(query)))


def fit_cuts(gains: Floats, labels: Floats, scale: Floats) -> Floats:
    """Return the lowest gain of each step of the scale, increasing.

    Each is the middle between two gains where Cohen's kappa of "gain at least the cut" with "label at least
    the step" is greatest, the lowest such cut. Without a cut better than chance, the cut is infinite: no
    passage gets the label.

    Args:
        gains: shape (n,), predicted without the passage's own judgment.
        labels: the judgments of the same passages.
        scale: the labels, increasing.
    """
    order = np.argsort(gains, kind="stable")
    ordered = gains[order]
    n = len(ordered)
    # A cut at index i puts i passages below; equal gains stay together.
    positions = np.flatnonzero(np.diff(ordered) > 0) + 1
    cuts = []
    for step in scale[1:]:
        high = labels[order] >= step
        above = n - positions
        both = high.sum() - np.concatenate([[0], np.cumsum(high)])[positions]
        agreed = (both + (positions - (high.sum() - both))) / n
        chance = (above * high.sum() + positions * (n - high.sum())) / n**2
        kappa = (agreed - chance) / np.where(chance < 1, 1 - chance, 1)
        if not len(positions) or kappa.max() <= 0:
            cuts.append(np.inf)
            continue
        at = positions[int(np.argmax(kappa))]
        cuts.append((ordered[at - 1] + ordered[at]) / 2)
    return np.maximum.accumulate(np.array(cuts))


def labels_of(gains: Floats, cuts: Floats, scale: Floats) -> Floats:
    """Return the label of each gain: the highest whose cut it reaches."""
    return np.asarray(scale[(gains[:, None] >= cuts).sum(axis=1)])
