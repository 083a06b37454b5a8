"""What nDCG and AP of runs are expected to be where judgments are missing, and how far off that may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.learn.arithmetic.drawn_measures import drawn_ap, drawn_ndcg
from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.learning import Learned, QueryPassages
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.posterior_labels import FittedLabels, PosteriorLabels

#: Draws of labels, and how many of these compare fits that lack some queries.
DRAWS, FEWER_DRAWS = 200, 50
#: Into how many groups queries go at most, each left out once.
GROUPS = 20


@dataclass(frozen=True, eq=False)
class ExpectedScores:
    """nDCG@k and AP at the pool's depth, in this order, of runs over queries.

    Of a mean over queries there are three variances:

    - labels: of the mean over draws of labels, by one fit; queries are drawn independently.
    - shared: the delete-group jackknife's, (g - 1) / g * sum((m_i - m)**2) over g fits, each without the
      judgments of a group of queries, of the mean over all of them (Shao & Tu, "The Jackknife and Bootstrap",
      1995, section 2.3). What the fit has wrong it has wrong in all queries.
    - queries: between queries, of what is expected of each, over how many there are.

    Attributes:
        values: the mean over draws of labels, shape (2, runs, queries).
        drawn: the mean over queries in each draw, shape (draws, 2, runs).
        refitted: the mean over queries by each of the fits, shape (groups, 2, runs); no groups where none
            leaves all labels.
    """

    values: Floats
    drawn: Floats
    refitted: Floats

    @property
    def means(self) -> Floats:
        """Of each run over the queries; shape (2, runs)."""
        return np.asarray(self.values.mean(axis=-1))

    def variances(self, *, these_queries: bool = False) -> Floats:
        """Of the means, shape (2, runs).

        labels + shared is how far they may be from those that all judgments of these queries would give.

        For all queries that might have been asked it is Rubin's total variance, U + (1 + 1/m) B (Rubin,
        "Multiple Imputation for Nonresponse in Surveys", 1987, equation 3.1.5), where B = labels + shared is
        that between m draws, and U = queries + labels that of a mean over queries whose labels are drawn. It
        is rather too large than too small, as draws know more than these queries' judgments (Meng 1994).

        Args:
            these_queries: whether the queries are fixed.
        """
        m = len(self.drawn)
        labels = self.drawn.var(axis=0, ddof=1)
        between = labels + self._shared()
        if these_queries:
            return np.asarray(between)
        queries = self.values.var(axis=-1, ddof=1) / self.values.shape[-1]
        return np.asarray(queries + labels + (1 + 1 / m) * between)

    def _shared(self) -> Floats:
        groups = len(self.refitted)
        if groups < 2:
            return np.zeros(self.drawn.shape[1:])
        return np.asarray((groups - 1) * self.refitted.var(axis=0))


def expected_scores(
    learned: Learned,
    queries: Sequence[PooledQueryToLearn],
    k: int,
    min_relevant: int,
    draws: int = DRAWS,
    seed: int = 0,
    others: Sequence[QueryPassages] = (),
) -> ExpectedScores:
    """The scores of the runs, with labels drawn for what is not judged.

    Args:
        learned: from these queries and the others.
        k: of nDCG.
        min_relevant: from this label on AP takes a passage as relevant.
        draws: at least two.
        seed: of the random numbers; the same one gives the same scores.
        others: passages of another track.
    """
    labels = PosteriorLabels(learned, queries, draws, seed, others)

    def scores(fitted: FittedLabels | None, n: int) -> Floats:
        """Shape (n, 2, runs, queries)."""
        of_queries = []
        for at, query in enumerate(queries):
            drawn = labels.draw(at, fitted, n)
            ndcg = drawn_ndcg(query.ranks, drawn, k, query.elsewhere)
            of_queries.append(
                np.stack([ndcg, drawn_ap(query.ranks, drawn, min_relevant, query.elsewhere)], 1)
            )
        return np.stack(of_queries, axis=-1)

    every = scores(None, draws)
    group_of = np.arange(labels.n_judged) % GROUPS
    unjudged = any(np.isnan(query.passages.judgments).any() for query in queries)
    refitted = []
    # Where all is judged nothing hangs on the fit.
    for group in np.unique(group_of) if unjudged else ():
        fitted = labels.fit_without(group_of == group)
        if fitted is not None:
            refitted.append(scores(fitted, min(draws, FEWER_DRAWS)).mean(axis=(0, 3)))
    return ExpectedScores(
        every.mean(axis=0), every.mean(axis=-1), np.array(refitted).reshape(-1, *every.shape[1:3])
    )
