"""Labels of whole pools, drawn from what was learned: passages that are alike err together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.learning import FOLDS, Learned, QueryPassages
from trecexam.extensions.learn.arithmetic.ordinal import GRID, OrdinalModel, Unseen, fit_ordinal
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.process import Kernel, unseen_posterior
from trecexam.extensions.learn.arithmetic.retrieval import retrieval
from trecexam.extensions.learn.arithmetic.steps import Steps, fit_steps, unseen_gains


@dataclass(frozen=True, eq=False)
class _Query:
    """What of a query's draws is the same whatever is fitted.

    Attributes:
        known: which of its passages with a text are judged.
        carried: what the residuals of those add to the means of the others, shape (others, judged).
        deviations: of the others' judgments.
        noise: standard normal, correlated as the others' judgments are; shape (draws, others).
        uniform: where in its posterior the query's effect of each step lies; shape (draws, steps).
        covariates: of its passages with a text.
    """

    known: NDArray[np.bool_]
    carried: Floats
    deviations: Floats
    noise: Floats
    uniform: Floats
    covariates: Floats


@dataclass(frozen=True, eq=False)
class FittedLabels:
    """What labels are drawn by: regressions, and the ordinal model of what they and neighbours predict."""

    steps: Steps
    ordinal: OrdinalModel


class PosteriorLabels:
    """Draws of what people would say of a track's unjudged passages.

    A judged passage has its judgment in each draw, and an unjudged one without a text the label 0. How runs
    retrieve a passage is among what its label is drawn by: a draw that does not know it has the runs too
    much alike (Meng, "Multiple-imputation inferences with uncongenial sources of input", Statistical Science
    9(4), 1994).

    Args:
        learned: from these queries and the others, with a Gaussian process.
        queries: of a track.
        n: how many draws.
        seed: of the random numbers.
        others: passages of another track; how runs retrieve them is not known, and counts as average.

    Attributes:
        fitted: what labels are drawn by.
        n_judged: how many queries it is fitted on, the others' too.
    """

    def __init__(
        self,
        learned: Learned,
        queries: Sequence[PooledQueryToLearn],
        n: int,
        seed: int = 0,
        others: Sequence[QueryPassages] = (),
    ) -> None:
        assert learned.kernel is not None
        self._queries = queries
        self._scale = learned.steps.scale
        covariates = retrieval(learned, queries)
        self._cached = [
            _cached(
                learned.kernel, query, of_query, n, len(self._scale) - 1, np.random.default_rng([seed, at])
            )
            for at, (query, of_query) in enumerate(zip(queries, covariates, strict=True))
        ]
        of_others = (np.zeros((len(of.doc_ids), covariates[0].shape[1])) for of in others)
        passages = [*(query.passages for query in queries), *others]
        judged = [
            (at, of, ~np.isnan(of.judgments), columns)
            for at, (of, columns) in enumerate(zip(passages, (*covariates, *of_others), strict=True))
            if not np.isnan(of.judgments).all()
        ]
        self._features = [of.features[rows] for _, of, rows, _ in judged]
        self._labels = [of.judgments[rows] for _, of, rows, _ in judged]
        self._unseen = {}
        unseen = unseen_gains(self._features, self._labels, FOLDS)
        for (at, of, rows, columns), gains in zip(judged, unseen, strict=True):
            mean, deviation = unseen_posterior(learned.kernel, of.vectors[rows], of.judgments[rows] - gains)
            self._unseen[at] = Unseen(gains + mean, deviation, columns[rows], of.judgments[rows])
        self.n_judged = len(judged)
        self.fitted = FittedLabels(learned.steps, fit_ordinal(list(self._unseen.values()), self._scale))

    def fit_without(self, left_out: NDArray[np.bool_]) -> FittedLabels | None:
        """What would be fitted without some queries' judgments; None if not the same labels were left.

        The kernel, and how far queries vary, stay: chosen among few, they would jump.

        Args:
            left_out: of the queries that have judgments.
        """
        kept = np.flatnonzero(~left_out).tolist()
        labels = [self._labels[number] for number in kept]
        if not kept or len(np.unique(np.concatenate(labels))) < len(self._scale):
            return None
        features = np.vstack([self._features[number] for number in kept])
        steps = fit_steps(features, np.concatenate(labels), self.fitted.steps)
        every = list(self._unseen.values())
        return FittedLabels(
            steps,
            fit_ordinal([every[number] for number in kept], self._scale, self.fitted.ordinal.variations),
        )

    def draw(self, at: int, fitted: FittedLabels | None = None, n: int | None = None) -> Floats:
        """Labels of all pooled passages of the query at this place; shape (draws, passages).

        Args:
            fitted: by what; None for all that is known. The random numbers are the same for all.
            n: only the first draws.
        """
        by, query, cached = fitted or self.fitted, self._queries[at], self._cached[at]
        noise, uniform = cached.noise[:n], cached.uniform[:n]
        gains = by.steps.gains(query.passages.features)
        others = ~cached.known
        residuals = (query.passages.judgments - gains)[cached.known]
        means = gains[others] + cached.carried @ residuals
        scores = by.ordinal.scores(means, cached.deviations, cached.covariates[others])
        places = np.cumsum(by.ordinal.effects(self._unseen.get(at)), axis=1)
        drawn = np.full(noise.shape, self._scale[0])
        reached = np.ones(noise.shape, bool)
        for step, label in enumerate(self._scale[1:]):
            effect = GRID[np.minimum(np.searchsorted(places[step], uniform[:, step]), len(GRID) - 1)]
            reached &= scores[:, step] + effect[:, None] + noise >= 0
            drawn[reached] = label
        labels = np.empty((len(noise), len(query.doc_ids)))
        labels[:] = np.nan_to_num(query.judgments)
        labels[:, query.rows[others]] = drawn
        return labels


def _cached(
    kernel: Kernel,
    query: PooledQueryToLearn,
    covariates: Floats,
    n: int,
    steps: int,
    rng: np.random.Generator,
) -> _Query:
    known = ~np.isnan(query.passages.judgments)
    judged, others = query.passages.vectors[known], query.passages.vectors[~known]
    across = kernel.between(judged, others)
    carried = np.asarray(np.linalg.solve(kernel.judged(judged), across).T if known.any() else across.T)
    covariance = kernel.judged(others) - carried @ across
    deviations: Floats = np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance)
    noise: Floats = rng.standard_normal((n, len(others))) @ root.T / deviations
    return _Query(known, carried, deviations, noise, rng.random((n, steps)), covariates)
