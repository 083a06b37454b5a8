"""One logistic regression for each step of the judgment scale; their probabilities add up to a gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.learn.arithmetic.features import Floats

#: The inverse of the strength of the L2 penalty, as scikit-learn has it.
C = 0.1


@dataclass(frozen=True, eq=False)
class Steps:
    """Logistic regressions of "is judged at least so", a step of the scale each.

    Attributes:
        scale: the labels that were there, increasing; a step leads from each to the next.
        center, spread: of each feature, by which it is standardised.
        weights: shape (steps, features).
        intercepts: shape (steps,).
    """

    scale: Floats
    center: Floats
    spread: Floats
    weights: Floats
    intercepts: Floats

    def gains(self, features: Floats) -> Floats:
        """The expected label: the lowest one and, of each step, its height times its probability."""
        logits = (features - self.center) / self.spread @ self.weights.T + self.intercepts
        # Where few are judged, others may lie thousands of their deviations away.
        probabilities = 1 / (1 + np.exp(np.minimum(-logits, 700)))
        return np.asarray(self.scale[0] + probabilities @ np.diff(self.scale))


def fit_steps(features: Floats, labels: Floats, start: Steps | None = None, c: float = C) -> Steps:
    """The regressions of judged passages.

    The same as the cumulative ("proportional odds") model without its common slope: P(label >= t) has weights
    of its own for each t.

    Args:
        features: shape (n, features).
        labels: shape (n,).
        start: of much the same passages, from which the search goes on.
        c: the inverse of the penalty's strength.

    Raises:
        ValueError: there are not two different labels.
    """
    from sklearn.linear_model import LogisticRegression

    scale = np.unique(labels)
    if len(scale) < 2:
        alike = "the only judgment is" if len(labels) == 1 else f"all {len(labels):,} judgments are"
        raise ValueError(f"{alike} {scale[0]:g}" if len(scale) else "no judgments")
    center, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread <= 1e-9 * np.maximum(np.abs(center), 1), 1.0, spread)
    standard = (features - center) / spread
    weights, intercepts = [], []
    for at in range(1, len(scale)):
        regression = LogisticRegression(C=c, solver="newton-cholesky", warm_start=True, max_iter=100)
        if start is not None and len(start.scale) == len(scale):
            regression.coef_ = start.weights[at - 1 : at].copy()
            regression.intercept_ = start.intercepts[at - 1 : at].copy()
        regression.fit(standard, labels >= scale[at])
        weights.append(regression.coef_[0])
        intercepts.append(regression.intercept_[0])
    return Steps(scale, center, spread, np.array(weights), np.array(intercepts))


def unseen_gains(
    features: Sequence[Floats], labels: Sequence[Floats], folds: int, c: float = C
) -> tuple[Floats, ...]:
    """The gains of each query's passages, by regressions that have seen no passage of that query.

    Args:
        features, labels: of the judged passages, an array a query.
        folds: into how many parts the queries go at most; the part of a query is left out.
        c: as of `fit_steps`.
    """
    folds = min(folds, len(features))
    every = fit_steps(np.vstack(features), np.concatenate(labels), c=c)
    fold_of = np.arange(len(features)) % folds if folds else np.empty(0, int)
    gains: list[Floats] = [np.empty(0)] * len(features)
    for fold in range(folds):
        others: list[int] = np.flatnonzero(fold_of != fold).tolist()
        seen = np.concatenate([labels[at] for at in others]) if len(others) else np.empty(0)
        if len(np.unique(seen)) < 2:
            steps = None
        else:
            steps = fit_steps(np.vstack([features[at] for at in others]), seen, every, c)
        for at in np.flatnonzero(fold_of == fold).tolist():
            mean = float(seen.mean()) if len(seen) else float(np.concatenate(labels).mean())
            gains[at] = np.full(len(labels[at]), mean) if steps is None else steps.gains(features[at])
    return tuple(gains)
