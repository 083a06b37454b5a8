"""Rubric-Cover of one ranking: numpy in, numbers out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.weights import whole_weight


class CoverValues(NamedTuple):
    """Cover and nCover of one ranking, both 0..1; Cover with negative weights can be below 0."""

    cover: float
    ncover: float


def cover_values(
    ratings: NDArray[np.integer],
    ranking: NDArray[np.intp],
    rel: int,
    cutoff: int | None = None,
    partial: int | None = None,
    weights: NDArray[np.float64] | None = None,
) -> CoverValues:
    """The share of a query's items that the first passages of a ranking reach.

    With R(d) the items on which passage d is rated `rel` or better,

        Cover(P, k, t) = |union of R(d) over the first k passages d of P| / |items of the query|

    and nCover divides by the items in the union of R(d) over all pooled passages instead; 0/0 is 0.
    Cover is the EXAM Cover of Sander & Dietz, "EXAM: How to Evaluate Retrieve-and-Generate Systems for
    Users Who Do Not (Yet) Know What They Want", DESIRES 2021, as Rubric-Cover in Farzi & Dietz, "Pencils
    Down! Automatic Rubric-based Evaluation of Retrieve/Generate Systems", ICTIR 2024.

    With weights w_i, and half the credit for an item that is reached from the rating `partial` on only,

        Cover(P, k, t) = sum of w_i * c_i over the items / sum of w_i over the items
        c_i = 1 where the best rating on item i over the first k passages is `rel` or better,
              1/2 where it is `partial` or better but below `rel`, else 0

    and nCover divides by the sum of w_i * c_i with all pooled passages instead. Where weights may be
    negative, of items that count against,

        Cover(P, k, t) = sum of w_i * c_i over the items / sum of the positive w_i

    which is 1 where all is reached that counts for and nothing that counts against, and can be below 0: the
    compliance score of Sharma et al., "ResearchRubrics: A Benchmark of Prompts and Rubrics For Evaluating
    Deep Research Agents", arXiv:2511.07685. Without a positive weight it is 0. For a single passage, a
    whole answer, Cover is the nugget scores of Pradeep et al., "Initial Nugget Evaluation Results for the
    TREC 2024 RAG Track with the AutoNuggetizer Framework", arXiv:2411.09607 (`calculate_nugget_scores` in
    nuggetizer's code).

    Args:
        ratings: shape (pooled passages, items of the query); a missing rating is any value below 1.
        ranking: for each rank, best first, the passage's row in `ratings`, or -1 for one outside the pool.
        rel: from this rating on, a passage reaches an item.
        cutoff: how many ranks count, at least 1; None for all.
        partial: 1 to below `rel`; None for no credit below `rel`.
        weights: of each item; None for equal ones. With negative ones, nCover has no meaning.
    """
    best = best_ratings(ratings, ranking, cutoff)
    whole = float(ratings.shape[1] if weights is None else whole_weight(weights))
    return shares(
        credit(best, rel, partial, weights),
        credit(ratings.max(axis=0, initial=-1), rel, partial, weights),
        whole,
    )


def best_ratings(
    ratings: NDArray[np.integer], ranking: NDArray[np.intp], cutoff: int | None = None
) -> NDArray[np.integer]:
    """The best rating of each item over the first passages of a ranking; -1 without one.

    Args:
        ratings, ranking, cutoff: as in `cover_values`.
    """
    rows = ranking[:cutoff]
    best: NDArray[np.integer] = ratings[rows[rows >= 0]].max(axis=0, initial=-1)
    return best


def credit(
    best: NDArray[np.integer], rel: int, partial: int | None, weights: NDArray[np.float64] | None
) -> float:
    """The sum of w_i * c_i over the items with these best ratings; see `cover_values`."""
    full = _weight(best, rel, weights)
    return full if partial is None else (full + _weight(best, partial, weights)) / 2


def expected_credit(
    at_least: NDArray[np.float64], rel: int, partial: int | None, weights: NDArray[np.float64] | None
) -> float:
    """The expected value of `credit` at the first passages, whose ratings are independent:

        E[sum of w_i * c_i] = sum of w_i * q_i(rel),  q_i(t) = 1 - prod_d (1 - P(d is rated t or better on i))

    and with `partial` the mean of that and of the same from `partial` on, since c_i is the mean of whether
    either is reached.

    Args:
        at_least: of the passages in the order of their ranks, shape (passages, items, 5), see `QueryRatings`.
        rel, partial, weights: as in `cover_values`; no rating is above 5.
    """
    levels = [rel] if partial is None else [rel, partial]
    expected = [
        in_order(reached if weights is None else weights * reached)
        for reached in (1 - misses(at_least, level).prod(axis=0) for level in levels)
    ]
    return float(sum(expected) / len(expected))


def misses(at_least: NDArray[np.float64], level: int) -> NDArray[np.float64]:
    """The probability that a passage is rated below `level` on an item; removes the last axis."""
    if level > at_least.shape[-1]:
        return np.ones(at_least.shape[:-1])
    below: NDArray[np.float64] = 1 - at_least[..., level - 1]
    return below


def in_order(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums over the last axis from left to right, bit-identical if zeros are appended."""
    sums: NDArray[np.float64] = np.cumsum(terms, axis=-1)
    # Not -0, as where all that counts against is certain not to be reached.
    return sums[..., -1] + 0.0 if terms.shape[-1] else np.zeros(terms.shape[:-1])


def shares(covered: float, pooled: float, whole: float) -> CoverValues:
    """Cover and nCover of the credit of a ranking, of all pooled passages, and of all items; 0/0 is 0."""
    if covered == 0 or whole == 0:
        return CoverValues(0.0, 0.0)
    return CoverValues(covered / whole, covered / pooled if pooled else 0.0)


def _weight(best: NDArray[np.integer], rel: int, weights: NDArray[np.float64] | None) -> float:
    """The sum of w_i over the items whose best rating is `rel` or better."""
    reached = best >= rel
    # Counting is a third faster than a product with ones.
    if weights is None:
        return float(np.count_nonzero(reached))
    # From left to right, as on columns: another order is another last bit.
    return float((weights * reached).cumsum()[-1]) if len(weights) else 0.0


def trec_order(scores: Mapping[str, float]) -> list[str]:
    """Return a query's doc_ids in trec_eval 10's order: score, then doc_id, both descending."""
    return sorted(scores, key=lambda doc_id: (scores[doc_id], doc_id), reverse=True)
