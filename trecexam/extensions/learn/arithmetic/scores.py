"""Expected nDCG and AP of runs with missing judgments."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.learning import Learned, by_regression
from trecexam.extensions.learn.arithmetic.passages import Floats, QueryPassages

#: Draws of labels.
DRAWS = 200


def expected_scores(
    learned: Learned, queries: Sequence[QueryPassages], k: int, min_relevant: int, draws: int = DRAWS
) -> Floats:
    """Return the runs' nDCG@k and AP at the pool's depth, means over drawn labels of unjudged passages.

    The draws of a query depend only on its id.

    Args:
        min_relevant: lowest relevant label for AP.

    Returns:
        Shape (2, runs, queries).
    """
    means = []
    for query in queries:
        rng = np.random.default_rng([0, zlib.crc32(query.query_id.encode(errors="surrogatepass"))])
        uniform = rng.random((draws, len(query.doc_ids)))
        drawn = drawn_labels(by_regression(learned, query), learned.scale, uniform, query)
        ndcg = drawn_ndcg(query.ranks, drawn, k, query.elsewhere)
        ap = drawn_ap(query.ranks, drawn, min_relevant, query.elsewhere)
        means.append(np.stack([ndcg.mean(axis=0), ap.mean(axis=0)]))
    return np.stack(means, axis=-1)


def drawn_labels(
    probabilities: Floats, scale: Floats, uniform: NDArray[np.float64], query: QueryPassages
) -> Floats:
    """Draw a query's labels; judged passages always have their judgment.

    Args:
        probabilities: probability of each step of the scale, shape (steps, passages), falling.
        uniform: random numbers in 0..1, shape (draws, passages).

    Returns:
        Shape (draws, passages).
    """
    steps = (uniform[:, None, :] < probabilities).sum(axis=1)
    return np.asarray(np.where(query.judged, query.judgments, scale[steps]))


def drawn_ndcg(ranks: NDArray[np.int32], labels: Floats, k: int, elsewhere: Floats) -> Floats:
    """Return nDCG@k of each run in each draw, as trec_eval: sum of gain / log2(rank + 1), over the best.

    Args:
        ranks: index in the pool of the passage at each rank, shape (runs, depth); -1 for none.
        labels: labels of the pooled passages, shape (draws, passages); negative labels count 0.
        k: cutoff.
        elsewhere: labels of unretrieved passages, which count in the ideal sum.

    Returns:
        Shape (draws, runs); 0 without any gain.
    """
    discounts = 1 / np.log2(np.arange(k) + 2)
    gains = np.maximum(np.hstack([labels, np.tile(elsewhere, (len(labels), 1))]), 0)
    best = -np.sort(-gains, axis=1)[:, :k]
    ideal = best @ discounts[: best.shape[1]]
    top = ranks[:, :k]
    sums = _at_ranks(np.maximum(labels, 0), top) @ discounts[: top.shape[1]]
    return np.asarray(sums / np.where(ideal, ideal, 1)[:, None])


def drawn_ap(ranks: NDArray[np.int32], labels: Floats, min_relevant: int, elsewhere: Floats) -> Floats:
    """Return AP(rel=min_relevant)@depth of each run in each draw, down to the depth of `ranks`.

    The sum of precisions at ranks of relevant passages, divided by the number of relevant passages
    (Buckley & Voorhees, "Evaluating Evaluation Measure Stability", SIGIR 2000).

    Arguments are as in `drawn_ndcg`; `min_relevant` is the lowest relevant label.

    Returns:
        Shape (draws, runs); 0 without relevant passages.
    """
    relevant = labels >= min_relevant
    total = relevant.sum(axis=1) + (elsewhere >= min_relevant).sum()
    hits = _at_ranks(relevant.astype(np.float64), ranks)
    precisions = np.cumsum(hits, axis=2) / (np.arange(ranks.shape[1]) + 1)
    return np.asarray((hits * precisions).sum(axis=2) / np.where(total, total, 1)[:, None])


def _at_ranks(values: Floats, ranks: NDArray[np.int32]) -> Floats:
    """Return values at ranks, shape (draws, runs, depth); 0 at ranks without a passage."""
    return np.asarray(np.hstack([values, np.zeros((len(values), 1))])[:, ranks])
