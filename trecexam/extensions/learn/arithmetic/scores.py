"""Expected nDCG and AP of runs with missing judgments, with their variances."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.learning import Learned, by_regression
from trecexam.extensions.learn.arithmetic.passages import Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.regression import fits_without

#: Draws of labels, and how many of these compare fits that lack some queries.
DRAWS, FEWER_DRAWS = 200, 50
#: Into how many groups queries go at most, each left out once.
GROUPS = 20


@dataclass(frozen=True, eq=False)
class ExpectedScores:
    """nDCG@k and AP at the pool's depth, in this order, of runs over queries.

    Attributes:
        values: the mean over draws of labels, shape (2, runs, queries).
        left: the mean over the other queries by fits that each lack a group of queries; shape (groups, 2,
            runs); no groups with one query.
    """

    values: Floats
    left: Floats

    @property
    def means(self) -> Floats:
        """Each run's means over the queries; shape (2, runs)."""
        return np.asarray(self.values.mean(axis=-1))

    def variances(self) -> Floats:
        """The variances of the means, over a population of queries; shape (2, runs).

        The delete-group jackknife's, (g - 1) / g * sum((m_i - m)**2) over g fits that each lack a group of
        queries (Shao & Tu, "The Jackknife and Bootstrap", 1995, section 2.3).
        """
        groups = len(self.left)
        return np.asarray((groups - 1) * self.left.var(axis=0)) if groups > 1 else np.zeros(self.means.shape)


def expected_scores(
    learned: Learned,
    queries: Sequence[QueryPassages],
    k: int,
    min_relevant: int,
    draws: int = DRAWS,
    seed: int = 0,
    other_queries: Sequence[QueryPassages] = (),
    *,
    fits: bool = True,
) -> ExpectedScores:
    """The scores of the runs, with drawn labels for unjudged passages.

    Args:
        learned: from these queries and the others.
        k: of nDCG.
        min_relevant: from this label on AP takes a passage as relevant.
        draws: at least two.
        seed: of the random numbers; the same one gives the same scores.
        other_queries: passages of another track.
        fits: False leaves out what variances need.
    """
    uniform = [
        np.random.default_rng([seed, zlib.crc32(query.query_id.encode(errors="surrogatepass"))]).random(
            (draws, len(query.doc_ids))
        )
        for query in queries
    ]

    def scores(probabilities: Sequence[Floats], n: int) -> Floats:
        """Means over draws, shape (2, runs, queries)."""
        means = []
        for query, of_query, numbers in zip(queries, probabilities, uniform, strict=True):
            drawn = drawn_labels(of_query, learned.scale, numbers[:n], query)
            ndcg = drawn_ndcg(query.ranks, drawn, k, query.elsewhere)
            ap = drawn_ap(query.ranks, drawn, min_relevant, query.elsewhere)
            means.append(np.stack([ndcg.mean(axis=0), ap.mean(axis=0)]))
        return np.stack(means, axis=-1)

    values = scores([by_regression(learned, query) for query in queries], draws)
    left = []
    columns, scale = learned.for_runs.columns, learned.scale
    variances = fits and len(queries) > 1
    for out, regression in fits_without(queries, columns, scale, GROUPS, other_queries) if variances else ():
        refitted = [
            np.where(query.judged, query.judgments >= scale[1:, None], regression.probabilities(query))
            for query in queries
        ]
        left.append(scores(refitted, min(draws, FEWER_DRAWS))[..., ~out].mean(axis=-1))
    shape = values.shape[:2]
    return ExpectedScores(values, np.array(left).reshape(-1, *shape))


def drawn_labels(
    probabilities: Floats, scale: Floats, uniform: NDArray[np.float64], query: QueryPassages
) -> Floats:
    """Draws of a query's labels; judged passages always have their judgment.

    Args:
        probabilities: of each step of the scale, shape (steps, passages), falling.
        uniform: numbers from 0 to 1, shape (draws, passages).

    Returns:
        Shape (draws, passages).
    """
    steps = (uniform[:, None, :] < probabilities).sum(axis=1)
    return np.asarray(np.where(query.judged, query.judgments, scale[steps]))


def drawn_ndcg(ranks: NDArray[np.int32], labels: Floats, k: int, elsewhere: Floats) -> Floats:
    """nDCG@k of each run in each draw, as `ndcg`.

    Args:
        ranks: shape (runs, depth): the place in the pool of the passage at each rank; -1 for none.
        labels: of the pooled passages, shape (draws, passages); negative ones count 0.
        k: ranks that count.
        elsewhere: labels of passages that no run has, which count for the best sum.

    Returns:
        Shape (draws, runs); 0 where nothing is gained.
    """
    discounts = 1 / np.log2(np.arange(k) + 2)
    gains = np.maximum(np.hstack([labels, np.tile(elsewhere, (len(labels), 1))]), 0)
    best = -np.sort(-gains, axis=1)[:, :k]
    ideal = best @ discounts[: best.shape[1]]
    top = ranks[:, :k]
    sums = _at_ranks(np.maximum(labels, 0), top) @ discounts[: top.shape[1]]
    return np.asarray(sums / np.where(ideal, ideal, 1)[:, None])


def drawn_ap(ranks: NDArray[np.int32], labels: Floats, min_relevant: int, elsewhere: Floats) -> Floats:
    """Average precision down to the depth of `ranks` of each run in each draw: AP(rel=min_relevant)@depth.

    The precisions at ranks of relevant passages, summed, over how many relevant passages there are
    (Buckley & Voorhees, "Evaluating Evaluation Measure Stability", SIGIR 2000).

    Arguments are those of `drawn_ndcg`; from `min_relevant` on a label is relevant.

    Returns:
        Shape (draws, runs); 0 where nothing is relevant.
    """
    relevant = labels >= min_relevant
    total = relevant.sum(axis=1) + (elsewhere >= min_relevant).sum()
    hits = _at_ranks(relevant.astype(np.float64), ranks)
    precisions = np.cumsum(hits, axis=2) / (np.arange(ranks.shape[1]) + 1)
    return np.asarray((hits * precisions).sum(axis=2) / np.where(total, total, 1)[:, None])


def _at_ranks(values: Floats, ranks: NDArray[np.int32]) -> Floats:
    """Shape (draws, runs, depth); 0 at ranks without a passage."""
    return np.asarray(np.hstack([values, np.zeros((len(values), 1))])[:, ranks])
