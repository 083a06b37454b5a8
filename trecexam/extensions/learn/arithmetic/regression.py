"""Logistic regressions of "is judged at least this label", one per step of the scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.learn.arithmetic.passages import ALWAYS, OPTIONAL, Floats, QueryPassages

#: Into how many parts queries go where each is to be predicted without its own judgments.
FOLDS = 5
#: The least probability of a step, and of its opposite, for a passage without a judgment.
LEAST = 1e-4


@dataclass(frozen=True, eq=False)
class Regression:
    """Fitted regressions.

    The same as the cumulative ("proportional odds") model without its common slope: each step has weights of
    its own.

    Attributes:
        scale: the labels that there are, increasing; a step leads from each to the next.
        columns: places among `FEATURES` of those that count.
        center, spread: of these, to standardise them.
        weights: shape (steps, columns).
        intercepts: shape (steps,).
        of_queries: what is added to the logits of a query whose judgments were seen, shape (steps,); empty
            where queries have no intercepts of their own.
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
        # Far from all that is judged a logit may be beyond what exp can take.
        return np.asarray(np.minimum.accumulate((1 / (1 + np.exp(np.minimum(-logits, 700)))).T, axis=0))


def expected(probabilities: Floats, scale: Floats) -> Floats:
    """Return the expected label of each passage; shape (passages,).

    Args:
        probabilities: as of `Regression.probabilities`.
    """
    return np.asarray(scale[0] + np.diff(scale) @ probabilities)


def scale_of(queries: Sequence[QueryPassages]) -> Floats:
    """Return 0 and every given label, increasing.

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

    What the judged passages do not show is not extrapolated, where only the most retrieved ones are judged:

    - Of each query one passage that no run retrieves counts as judged 0: the mean of `background`. Nobody
      doubts that it would be, and it says where relevance goes below the judged passages.
    - More votes never make relevance less likely: a step whose regression says so is fitted without `fusion`.

    Args:
        columns: places among `FEATURES`, the first of them that of `fusion`.
        scale: the labels, as of `scale_of`. A step that no judged passage reaches has probability 0.
        by_query: whether each query has its own intercept, with the same penalty: some queries have
            many relevant passages, others few.
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
            # Of the logarithm of a rank, so that a greater one means fewer votes.
            if weights[at, 0] <= 0:
                break
    intercepts_by_query = zip(judged, query_intercepts.T, strict=True) if by_query else ()
    of_queries = {query.query_id: of_query for query, of_query in intercepts_by_query}
    return Regression(scale, tuple(columns), center, spread, weights, intercepts, of_queries)


def unseen(queries: Sequence[QueryPassages], columns: Sequence[int], scale: Floats) -> tuple[Floats, ...]:
    """Return the probabilities for each query's passages from regressions fitted without its judgments.

    Of a single query they have seen its judgments: there are no others.

    Args:
        queries: each with a judgment.

    Returns:
        Of each query, shape (steps, passages).
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
    """Choose the features: the first three, and each other one that improves the likelihood.

    One does where the judgments of queries that were not seen become more likely with it, by more than one
    standard error of the sum over queries (the "one standard error rule": Breiman, Friedman, Olshen & Stone,
    "Classification and Regression Trees", 1984, section 3.4.3).

    Args:
        queries: each with a judgment.

    Returns:
        Places among `FEATURES`, and the probabilities of `unseen` with these features.
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
    """Return True where a sum over queries is above 0 by more than its standard error.

    Args:
        differences: of each query.
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
