"""Cover, nCover and ECover: the share of the query's items that the first passages reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ir_measures import Measure
from numpy.typing import NDArray

from trecexam.scores.columns.judged import UNJUDGED, Judged
from trecexam.scores.columns.measures.base import (
    ColumnMeasure,
    Computation,
    Values,
    considered,
    last_sum,
    ratio,
)
from trecexam.scores.cover import BY_IMPORTANCE, EQUAL, ITEM


def best_ratings(items: NDArray[np.integer], rows: NDArray[np.int32]) -> NDArray[np.integer]:
    """Return each item's best rating over the passages of a ranking, -1 without one; shape (rankings, items).

    `rows` has each passage's row in `Judged.items`, -1 for none; shape (rankings, passages).
    """
    best: NDArray[np.integer] = items[rows].max(axis=1, initial=-1)
    return best


def credits_of(best: NDArray[np.integer], rel: int, partial: int | None, weights: Values | None) -> Values:
    """Each query's sum of w_i * c_i over its items, see `cover`; weights are added from left to right."""
    full = _weight(best >= rel, weights)
    return full if partial is None else (full + _weight(best >= partial, weights)) / 2


def cover(covered: Values, whole: Values) -> Values:
    """Rubric-Cover: the credit at the hits / that of all items (Cover) or of the pool's best (nCover).

    With w_i the weights of the items, 1 unless the measure says otherwise,

        Cover(P, k, t) = sum of w_i * c_i over the items / sum of the positive w_i
        c_i = 1 where the best rating on item i over the first k passages is `rel` or better,
              1/2 where it is `partial` or better but below `rel`, else 0

    and nCover divides by the sum of w_i * c_i with all pooled passages instead; 0/0 is 0. Cover is the EXAM
    Cover of Sander & Dietz, "EXAM: How to Evaluate Retrieve-and-Generate Systems for Users Who Do Not (Yet)
    Know What They Want", DESIRES 2021, and the Rubric-Cover of Farzi & Dietz, "Pencils Down! Automatic
    Rubric-based Evaluation of Retrieve/Generate Systems", ICTIR 2024. Where weights may be negative, of items
    that count against, it is the compliance score of Sharma et al., "ResearchRubrics", arXiv:2511.07685. For
    a single passage, a whole answer, it is the nugget scores of Pradeep et al., arXiv:2411.09607
    (`calculate_nugget_scores` in nuggetizer's code).
    """
    return np.where(covered == 0, 0.0, ratio(covered, whole))


def expected_credits(below: Sequence[Values], rows: NDArray[np.int32], weights: Values | None) -> Values:
    """Each query's expected value of `credits_of` at the hits, whose ratings are independent:

        E[sum of w_i * c_i] = sum of w_i * q_i(rel),  q_i(t) = 1 - prod_d (1 - P(d is rated t or better on i))

    and with `partial` the mean of that and of the same from `partial` on, since c_i is the mean of whether
    either is reached.

    Args:
        below: for rel, and for partial if there is one, the probability that a passage is rated below on each
            item: shape (passages + 1, most items of a query), 1 beyond a query's items and in the last row.
        rows: of the hits, -1 beyond a query's.
    """
    reached = [1 - each[rows].prod(axis=1) for each in below]
    expected = [last_sum(each if weights is None else weights * each) for each in reached]
    # Not -0, as where all that counts against is certain not to be reached.
    return np.asarray(sum(expected) / len(expected) + 0.0, np.float64)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes Cover, nCover or ECover(rel, partial, weights)@k.

    Raises:
        ValueError: the judgments have no ratings of items, no importances or weights where these count, or
            no probabilities of ratings where ECover does.
    """
    rel, partial = measure["rel"], measure["partial"]
    items, weights = judged.items, _weights(measure, judged)
    judged.item_rows.check(measure)
    if measure.NAME == "ECover":
        below = _below(measure, judged)
        whole = _whole(judged, weights)
        return lambda hits: ratio(expected_credits(below, considered(measure, hits).rows, weights), whole)
    if measure.NAME == "Cover":
        whole = _whole(judged, weights)
    else:
        whole = credits_of(_pool(judged), rel, partial, weights)
    return lambda hits: cover(
        credits_of(best_ratings(items, considered(measure, hits).rows), rel, partial, weights), whole
    )


def _whole(judged: Judged, weights: Values | None) -> Values:
    return judged.n_items.astype(np.float64) if weights is None else last_sum(np.maximum(weights, 0))


def _below(measure: Measure, judged: Judged) -> list[Values]:
    levels = [level for level in (measure["rel"], measure["partial"]) if level is not None]
    padded = [np.ones(judged.items.shape) for _ in levels]
    for i, table in enumerate(judged.tables):
        of_query = table.at_least
        if of_query is None and judged.has_labels[i]:
            raise _lacking(measure, "the probability of each rating", "track.qrels(probabilities=True)")
        if of_query is not None:
            start, (n_docs, n_items) = int(judged.offsets[i]), of_query.shape[:2]
            # No rating is above the best one.
            for below, level in zip(padded, levels, strict=True):
                if level <= of_query.shape[-1]:
                    below[start : start + n_docs, :n_items] = 1 - of_query[..., level - 1]
    return padded


def _weight(reached: NDArray[np.bool_], weights: Values | None) -> Values:
    if weights is None:
        return np.asarray(np.count_nonzero(reached, axis=1), np.float64)
    return last_sum(weights * reached)


def _weights(measure: Measure, judged: Judged) -> Values | None:
    """The items' weights, padded with 0; None for equal weights."""
    name = measure["weights"]
    if name == EQUAL:
        return None
    if name == ITEM and judged.has_labels.any() and all(table.weights is None for table in judged.tables):
        raise _lacking(measure, "weights of items", "track.qrels() of a bank whose items have them")
    weights = np.zeros((len(judged.query_ids), judged.items.shape[1]), np.float64)
    for i, (table, n_items) in enumerate(zip(judged.tables, judged.n_items.tolist(), strict=True)):
        if name == ITEM:
            weights[i, :n_items] = 1 if table.weights is None else table.weights
        elif table.importances is not None:
            vital, other = BY_IMPORTANCE[name]
            weights[i, :n_items] = [vital if each == "vital" else other for each in table.importances]
        elif judged.has_labels[i]:
            raise _lacking(measure, "the importance of items", "track.qrels() of a bank whose items have it")
    return weights


def _lacking(measure: Measure, needed: str, remedy: str) -> ValueError:
    return ValueError(f"{measure} needs {needed}, and these qrels carry none: pass {remedy}")


def _pool(judged: Judged) -> NDArray[np.integer]:
    """Each item's best rating of all labelled passages; shape (queries, items)."""
    best = np.full((len(judged.query_ids), judged.items.shape[1]), -1, judged.items.dtype)
    labelled = judged.labels != UNJUDGED
    for i in np.flatnonzero(judged.has_labels).tolist():
        span = slice(int(judged.offsets[i]), int(judged.offsets[i + 1]))
        best[i] = judged.items[span][labelled[span]].max(axis=0, initial=-1)
    return best


_PARAMETERS = frozenset(("cutoff", "rel", "partial", "weights"))

MEASURES = (
    ColumnMeasure(
        "Cover",
        _PARAMETERS,
        computation,
        "all, on [qrels that name items](../trec-eval.md#in-python-on-numpy-columns)",
        on_items=True,
    ),
    ColumnMeasure("nCover", _PARAMETERS, computation, "as Cover", depends_on_pool=True, on_items=True),
    ColumnMeasure(
        "ECover",
        _PARAMETERS,
        computation,
        "as Cover, on rows that carry probabilities: `track.qrels(probabilities=True)`",
        on_items=True,
    ),
)
