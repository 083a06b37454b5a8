"""Fits all of it on a track's judgments, and says what the passages without one would be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.learn.arithmetic.cuts import fit_cuts, labels_of
from trecexam.extensions.learn.arithmetic.features import Floats, Vectors
from trecexam.extensions.learn.arithmetic.process import (
    KERNELS,
    Kernel,
    choose_kernel,
    leave_one_out,
    posterior,
)
from trecexam.extensions.learn.arithmetic.steps import C, Steps, fit_steps, unseen_gains

#: Into how many parts queries go where each is to be predicted without its own judgments.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class QueryPassages:
    """The pooled passages of a query that have a text.

    Attributes:
        query_id: the query.
        doc_ids: sorted.
        vectors: float32 unit vectors, shape (n, dimension).
        features: shape (n, features).
        judgments: shape (n,); NaN where there is none.
    """

    query_id: str
    doc_ids: tuple[str, ...]
    vectors: Vectors
    features: Floats
    judgments: Floats


@dataclass(frozen=True, eq=False)
class Learned:
    """What was fitted.

    Attributes:
        steps: of the scale.
        kernel: of all queries' processes; None leaves neighbours out.
        cuts: of each step.
        n_judgments: fitted on so many.
    """

    steps: Steps
    kernel: Kernel | None
    cuts: Floats
    n_judgments: int


@dataclass(frozen=True, eq=False)
class Prediction:
    """Of a query's passages, shape (n,) each.

    Attributes:
        gains: the expected label; a judged passage has its judgment.
        deviations: the standard deviation of what a person would say; 0 of judged passages.
        labels: by the cuts; a judged passage has its judgment.
    """

    gains: Floats
    deviations: Floats
    labels: Floats


def fit(queries: Sequence[QueryPassages], kernels: Sequence[Kernel] = KERNELS, c: float = C) -> Learned:
    """Fits steps, kernel and cuts on the judgments of these queries.

    Args:
        kernels: what is chosen among; none leaves the Gaussian process out.
        c: the inverse of the strength of the regressions' penalty.

    Raises:
        ValueError: no judgments, or not two different ones.
    """
    judged = [(query, np.flatnonzero(~np.isnan(query.judgments))) for query in queries]
    judged = [(query, rows) for query, rows in judged if len(rows)]
    features = [query.features[rows] for query, rows in judged]
    labels = [query.judgments[rows] for query, rows in judged]
    every = np.vstack(features) if features else np.empty((0, 1))
    steps = fit_steps(every, np.concatenate([*labels, []]), c=c)
    unseen = unseen_gains(features, labels, FOLDS, c)
    residuals = [of_query - gains for of_query, gains in zip(labels, unseen, strict=True)]
    vectors = [query.vectors[rows] for query, rows in judged]
    kernel = choose_kernel(list(zip(vectors, residuals, strict=True)), kernels) if kernels else None
    if kernel is not None:
        unseen = tuple(
            gains + leave_one_out(kernel, of_query, residual)
            for gains, of_query, residual in zip(unseen, vectors, residuals, strict=True)
        )
    cuts = fit_cuts(np.concatenate(unseen), np.concatenate(labels), steps.scale)
    return Learned(steps, kernel, cuts, sum(map(len, labels)))


def predict(learned: Learned, query: QueryPassages) -> Prediction:
    """What the passages of a query would be judged, by what was fitted and the query's own judgments."""
    scale = learned.steps.scale
    gains = learned.steps.gains(query.features)
    known = ~np.isnan(query.judgments)
    if learned.kernel is None:
        deviations = np.sqrt(np.maximum((gains - scale[0]) * (scale[-1] - gains), 0))
    else:
        mean, variance = posterior(
            learned.kernel, query.vectors[known], query.judgments[known] - gains[known], query.vectors
        )
        gains, deviations = gains + mean, np.sqrt(variance)
    labels = labels_of(gains, learned.cuts, scale)
    gains = np.clip(gains, scale[0], scale[-1])
    return Prediction(
        np.where(known, query.judgments, gains),
        np.where(known, 0.0, deviations),
        np.where(known, query.judgments, labels),
    )
