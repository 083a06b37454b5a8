"""From expected judgments to probabilities of labels: an ordered probit on predictions of unseen labels.

McCullagh, "Regression models for ordinal data", JRSS B 42(2), 1980, section 6 for a spread that varies; Tutz
& Hennevogl, "Random effects in ordinal regression models", Computational Statistics & Data Analysis 22, 1996,
for effects of groups, here queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.features import Floats

#: Where a query's effect is looked for, in deviations of a judgment, and how far effects may vary.
GRID = np.linspace(-2.4, 2.4, 49)
VARIATIONS = (0.02, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)
#: Precisions of normal priors around 0: of the logarithm of the spread and its slope, and of weights.
_OF_SPREAD, _OF_WEIGHTS = 4.0, 1.0


@dataclass(frozen=True, eq=False)
class Unseen:
    """What is predicted of a query's judged passages without their own judgment; of shape (n,).

    Attributes:
        means, deviations: of the judgment.
        covariates: what else is known of the passage, shape (n, covariates).
        labels: what it was judged.
    """

    means: Floats
    deviations: Floats
    covariates: Floats
    labels: Floats


@dataclass(frozen=True, eq=False)
class OrdinalModel:
    """P(label >= step t) = Phi(root(1 + variation_t**2) * marginal_t + effect_t), where
    marginal_t = (mean + weights . covariates - cut_t) / (deviation * spread).

    log(spread) = level + slope * sqrt(share), where share is how far up the scale the mean lies, 0..1;
    effect_t is the query's, normal around 0 with deviation variation_t. Over all queries the probability is
    Phi(marginal_t): what is fitted without effects is of all queries together, and lies nearer to a half
    than a query's own (Zeger, Liang & Albert, "Models for longitudinal data: a generalized estimating
    equation approach", Biometrics 44, 1988, section 3).

    Attributes:
        scale: the labels, increasing.
        cuts: of each step, increasing.
        level, slope: of the logarithm of the spread.
        weights: of the covariates.
        variations: the standard deviation of queries' effects, of each step.
    """

    scale: Floats
    cuts: Floats
    level: float
    slope: float
    weights: Floats
    variations: Floats

    def scores(self, means: Floats, deviations: Floats, covariates: Floats) -> Floats:
        """What is within Phi above, but for the query's effect; shape (n, steps)."""
        spread = deviations * np.exp(self.level + self.slope * root_share(means, self.scale))
        marginal = ((means + covariates @ self.weights)[:, None] - self.cuts) / spread[:, None]
        return np.asarray(marginal * np.sqrt(1 + self.variations**2))

    def effects(self, unseen: Unseen | None) -> Floats:
        """The posterior of a query's effects, over `GRID`; shape (steps, len(GRID)).

        Args:
            unseen: of the query; None where none of its passages is judged.
        """
        log = -0.5 * (GRID / self.variations[:, None]) ** 2
        if unseen is not None:
            log = log + _likelihoods(self, unseen)
        weights = np.exp(log - log.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def root_share(means: Floats, scale: Floats) -> Floats:
    """The root of how far up the scale each mean lies; that of labels' spread, if they were counts."""
    return np.asarray(np.sqrt(np.clip((means - scale[0]) / (scale[-1] - scale[0]), 0, 1)))


def fit_ordinal(queries: Sequence[Unseen], scale: Floats, variations: Floats | None = None) -> OrdinalModel:
    """The most likely model, with priors that hold spread and weights where judgments are few.

    Args:
        variations: of queries' effects; None to choose them by likelihood, after all else.
    """
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    means, deviations, labels = (
        np.concatenate([getattr(query, name) for query in queries])
        for name in ("means", "deviations", "labels")
    )
    covariates = np.vstack([query.covariates for query in queries])
    signs = _signs(labels, scale)
    share = root_share(means, scale)
    steps = len(scale) - 1

    def model(at: Floats) -> OrdinalModel:
        # Cuts by their distances, which stay above 0.
        cuts = np.cumsum(np.concatenate([at[:1], np.exp(at[1:steps])]))
        level, slope = at[steps : steps + 2].tolist()
        return OrdinalModel(scale, cuts, level, slope, at[steps + 2 :], np.zeros(steps))

    def loss(at: Floats) -> tuple[float, Floats]:
        tried = model(at)
        spread = deviations * np.exp(tried.level + tried.slope * share)
        scores = signs * tried.scores(means, deviations, covariates)
        logs = log_ndtr(scores)
        # The derivative of log Phi: the inverse Mills ratio.
        ratio = signs * np.exp(-0.5 * scores**2 - 0.5 * np.log(2 * np.pi) - logs)
        by_score = ratio / spread[:, None]
        by_cut = -by_score.sum(axis=0)
        by_spread = -(ratio * signs * scores).sum(axis=1)
        later = np.cumsum(by_cut[::-1])[::-1]
        gradient = np.concatenate(
            [
                later[:1],
                later[1:] * np.exp(at[1:steps]),
                [by_spread.sum(), (by_spread * share).sum()],
                covariates.T @ by_score.sum(axis=1),
            ]
        )
        strength = np.repeat([0.0, _OF_SPREAD, _OF_WEIGHTS], [steps, 2, covariates.shape[1]])
        return float(-logs.sum() + 0.5 * (strength * at**2).sum()), strength * at - gradient

    middles = (scale[1:] + scale[:-1]) / 2
    start = np.concatenate([middles[:1], np.log(np.diff(middles)), np.zeros(2 + covariates.shape[1])])
    fitted = model(minimize(loss, start, jac=True, method="L-BFGS-B").x)
    return replace(fitted, variations=_variations(fitted, queries) if variations is None else variations)


def _variations(model: OrdinalModel, queries: Sequence[Unseen]) -> Floats:
    """Of each step the variation of effects under which the queries' labels are the most likely.

    Args:
        model: with any variations.
    """
    likelihoods = []
    for variation in VARIATIONS:
        varying = replace(model, variations=np.full(len(model.cuts), variation))
        logs = np.stack([_likelihoods(varying, query) for query in queries])
        highest = logs.max(axis=2, keepdims=True)
        prior = np.exp(-0.5 * (GRID / variation) ** 2)
        marginal = (np.exp(logs - highest) * (prior / prior.sum())).sum(axis=2)
        likelihoods.append((np.log(np.maximum(marginal, 1e-300)) + highest[:, :, 0]).sum(axis=0))
    return np.asarray(np.array(VARIATIONS)[np.argmax(likelihoods, axis=0)])


def _likelihoods(model: OrdinalModel, unseen: Unseen) -> Floats:
    """The logarithm of the likelihood of a query's labels at each effect; shape (steps, len(GRID))."""
    from scipy.special import log_ndtr

    scores = model.scores(unseen.means, unseen.deviations, unseen.covariates)
    signs = _signs(unseen.labels, model.scale)
    return np.asarray(log_ndtr(signs[:, :, None] * (scores[:, :, None] + GRID)).sum(axis=0))


def _signs(labels: Floats, scale: Floats) -> NDArray[np.int64]:
    return np.where(labels[:, None] >= scale[1:], 1, -1)
