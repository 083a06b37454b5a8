"""Logistic regressions of "is judged at least this label", one per step of the scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.learn.arithmetic.passages import ALWAYS, OPTIONAL, Floats, QueryPassages

#: Number of folds of queries for predictions without a query's own judgments.
FOLDS = 5
#: Minimum probability of a step, and of its complement, for an unjudged passage.
LEAST = 1e-4


@dataclass(frozen=True, eq=False)
class Regression:
    """Fitted regressions.

    Like the cumulative ("proportional odds") model, but each step has separate weights.

    Attributes:
        scale: all labels, increasing; a step leads from each label to the next.
        columns: indices in `FEATURES` of the features used.
        center, spread: mean and standard deviation of these features.
        weights: shape (steps, columns).
        intercepts: shape (steps,).
        of_queries: query_id -> intercepts of a query in the fit, shape (steps,); empty without intercepts per
            query.
    """

    scale: Floats
    columns: tuple[int, ...]
    center: Floats
    spread: Floats
    weights: Floats
    intercepts: Floats
    of_queries: Mapping[str, Floats]

    def probabilities(self, query: QueryPassages) -> Floats:
        """Return P(judged at least each step) of each passage; shape (steps, passages), decreasing."""
        features = (query.features[:, self.columns] - self.center) / self.spread
        logits = features @ self.weights.T + self.intercepts + self.of_queries.get(query.query_id, 0.0)
        # Far from all judged passages, a logit may overflow exp.
        return np.asarray(np.minimum.accumulate((1 / (1 + np.exp(np.minimum(-logits, 700)))).T, axis=0))


def expected(probabilities: Floats, scale: Floats) -> Floats:
    """Return the expected label of each passage; shape (passages,).

    Args:
        probabilities: as from `Regression.probabilities`.
    """
    return np.asarray(scale[0] + np.diff(scale) @ probabilities)


def scale_of(queries: Sequence[QueryPassages]) -> Floats:
    """Return 0 and all labels in the judgments, increasing.

    Raises:
        ValueError: there are no judgments, or not two different ones.
    """
    judgments = np.concatenate([np.empty(0), *(query.judgments[query.judged] for query in queries)])
    labels = np.unique(judgments)
    if len(labels) < 2:
        alike = "the only judgment is" if judgments.size == 1 else f"all {judgments.size:,} judgments are"
        raise ValueError(f"{alike} {labels[0]:g}" if judgments.size else "no judgments")
    return np.unique(np.append(labels, 0.0))


def fit_regression(
    queries: Sequence[QueryPassages],
    columns: Sequence[int],
    scale: Floats,
    *,
    by_query: bool = False,
) -> Regression:
    """Fit the regressions, with the L2 penalty of scikit-learn's default (C = 1).

    Two rules limit extrapolation if only the most retrieved passages are judged:

    - For each query, one unretrieved passage, the mean of `background`, counts as judged 0. It shows the
      relevance below the judged passages.
    - More votes never make relevance less likely: a step whose regression says so is fitted without `fusion`.

    Args:
        columns: indices in `FEATURES`, that of `fusion` first.
        scale: the labels, as from `scale_of`. A step that no judged passage reaches has probability 0.
        by_query: fit an intercept per query with the same penalty, since queries differ in their number of
            relevant passages.
    """
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    every = np.vstack([query.features for query in queries])[:, list(columns)]
    center, spread = every.mean(axis=0), every.std(axis=0)
    spread = np.where(spread > 1e-9 * np.maximum(np.abs(every).max(axis=0), 1), spread, 1.0)
    judged = [query for query in queries if query.judged.any()]
    seen = [query.features[query.judged] for query in judged]
    background = [query.background for query in judged]
    sizes = [len(part) for part in (*seen, *background)]
    features = (np.vstack([*seen, *background])[:, list(columns)] - center) / spread
    labels = [query.judgments[query.judged] for query in judged]
    reached = (
        np.append(np.concatenate(labels), np.full(sum(map(len, background)), scale[0])) >= scale[1:, None]
    )
    counts = np.repeat([*np.ones(len(judged)), *(1 / max(1, len(part)) for part in background)], sizes)
    rows = np.arange(len(features))
    columns_of_queries = np.repeat(np.tile(np.arange(len(judged)), 2), sizes)
    one_hot = csr_matrix((np.ones(len(rows)), (rows, columns_of_queries)), shape=(len(rows), len(judged)))
    n_steps, n = len(scale) - 1, len(columns)
    weights, intercepts = np.zeros((n_steps, n)), np.full(n_steps, -np.inf)
    query_intercepts = np.zeros((n_steps, len(judged)))
    for at in range(n_steps):
        if not reached[at].any() or reached[at].all():
            intercepts[at] = np.inf if reached[at].any() else -np.inf
            continue
        for first in (0, 1):
            table = features[:, first:]
            table = hstack([table, one_hot]).tocsr() if by_query else table
            fitted = LogisticRegression(C=1.0, max_iter=1000).fit(table, reached[at], counts)
            weights[at, :first], weights[at, first:] = 0.0, fitted.coef_[0, : n - first]
            intercepts[at] = fitted.intercept_[0]
            if by_query:
                query_intercepts[at] = fitted.coef_[0, n - first :]
            # A greater log rank means fewer votes.
            if weights[at, 0] <= 0:
                break
    intercepts_by_query = zip(judged, query_intercepts.T, strict=True) if by_query else ()
    of_queries = {query.query_id: of_query for query, of_query in intercepts_by_query}
    return Regression(scale, tuple(columns), center, spread, weights, intercepts, of_queries)


def unseen(queries: Sequence[QueryPassages], columns: Sequence[int], scale: Floats) -> tuple[Floats, ...]:
    """Return the probabilities for each query's passages from regressions fitted without its judgments.

    With a single query, the regressions include its judgments.

    Args:
        queries: each with a judgment.

    Returns:
        For each query, shape (steps, passages).
    """
    probabilities: dict[int, Floats] = {}
    for fold in range(min(FOLDS, len(queries))):
        left = [query for at, query in enumerate(queries) if at % FOLDS != fold]
        regression = fit_regression(left or queries, columns, scale)
        for at in range(fold, len(queries), FOLDS):
            probabilities[at] = regression.probabilities(queries[at])
    return tuple(probabilities[at] for at in range(len(queries)))


def choose_columns(
    queries: Sequence[QueryPassages], scale: Floats
) -> tuple[tuple[int, ...], tuple[Floats, ...]]:
    """Choose the features: the first three, and further features that improve the likelihood.

    A feature is added if it raises the likelihood of held-out judgments by more than one standard error of
    the sum over queries (the "one standard error rule": Breiman, Friedman, Olshen & Stone, "Classification
    and Regression Trees", 1984, section 3.4.3).

    Args:
        queries: each with a judgment.

    Returns:
        Indices in `FEATURES`, and the probabilities from `unseen` with these features.
    """
    columns = tuple(range(len(ALWAYS)))
    predicted = unseen(queries, columns, scale)
    for more in range(len(ALWAYS), len(ALWAYS) + len(OPTIONAL)):
        if not any(query.features[:, more].any() for query in queries):
            continue
        other = unseen(queries, (*columns, more), scale)
        if adds(_likelihoods(queries, other, scale) - _likelihoods(queries, predicted, scale)):
            columns, predicted = (*columns, more), other
    return columns, predicted


def adds(differences: Floats) -> bool:
    """Return True if a sum over queries exceeds 0 by more than its standard error.

    Args:
        differences: one value per query.
    """
    n = len(differences)
    return n > 1 and bool(differences.sum() > differences.std(ddof=1) * np.sqrt(n))


def _likelihoods(queries: Sequence[QueryPassages], probabilities: Sequence[Floats], scale: Floats) -> Floats:
    """Return the log-likelihood of each query's judgments."""
    sums = []
    for query, of_query in zip(queries, probabilities, strict=True):
        reached = query.judgments[query.judged] >= scale[1:, None]
        p = np.clip(of_query[:, query.judged], LEAST, 1 - LEAST)
        sums.append(float(np.log(np.where(reached, p, 1 - p)).sum()))
    return np.array(sums)
