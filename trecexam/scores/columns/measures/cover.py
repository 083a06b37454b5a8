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
from trecexam.scores.columns.ranked import Hits
from trecexam.scores.cover import NO_PROBABILITIES
from trecexam.scores.cover_kernel import in_order, misses
from trecexam.scores.from_rows import together
from trecexam.scores.weights import EQUAL, ITEM, NO_WEIGHTS, item_weights


def best_ratings(items: NDArray[np.integer], hits: Hits) -> NDArray[np.integer]:
    """Each item's best rating at the hits, -1 without one; shape (queries, items).

    Args:
        items: of `Judged.items`.
    """
    best: NDArray[np.integer] = items[hits.rows].max(axis=1, initial=-1)
    return best


def credits_of(best: NDArray[np.integer], rel: int, partial: int | None, weights: Values | None) -> Values:
    """Each query's sum of w_i * c_i; see `trecexam.scores.cover_kernel.cover_values`.

    Weights are added from left to right, as there.
    """
    full = _weight(best >= rel, weights)
    return full if partial is None else (full + _weight(best >= partial, weights)) / 2


def cover(covered: Values, whole: Values) -> Values:
    """Rubric-Cover: the credit at the hits / that of all items (Cover) or of the pool's best (nCover).

    0..1; below 0 where more is reached that counts against than that counts for.
    Sander & Dietz, "EXAM: How to Evaluate Retrieve-and-Generate Systems for Users Who Do Not (Yet) Know What
    They Want", DESIRES 2021; for the formulas see `trecexam.scores.cover_kernel.cover_values`.
    """
    return np.where(covered == 0, 0.0, ratio(covered, whole))


def expected_credits(below: Sequence[Values], rows: NDArray[np.int32], weights: Values | None) -> Values:
    """Each query's expected value of `credits_of`; see `trecexam.scores.cover_kernel.expected_credit`.

    Args:
        below: for rel, and for partial if there is one, the probability that a passage is rated below on each
            item: shape (passages + 1, most items of a query), 1 beyond a query's items and in the last row.
        rows: of the hits, -1 beyond a query's.
    """
    reached = [1 - each[rows].prod(axis=1) for each in below]
    expected = [in_order(each if weights is None else weights * each) for each in reached]
    return np.asarray(sum(expected) / len(expected), np.float64)


def computation(measure: Measure, judged: Judged) -> Computation:
    """Computes Cover, nCover or ECover(rel, partial, weights)@k.

    Raises:
        ValueError: the judgments have no ratings of items, no importances or weights where these count, or
            no probabilities of ratings where ECover does.
    """
    rel, partial = measure["rel"], measure["partial"]
    items, weights = judged.items, _weights(measure, judged)
    together(judged.item_rows).check(measure)
    if measure.NAME == "ECover":
        below = _below(measure, judged)
        whole = _whole(judged, weights)
        return lambda hits: ratio(expected_credits(below, considered(measure, hits).rows, weights), whole)
    if measure.NAME == "Cover":
        whole = _whole(judged, weights)
    else:
        whole = credits_of(_pool(judged), rel, partial, weights)
    return lambda hits: cover(
        credits_of(best_ratings(items, considered(measure, hits)), rel, partial, weights), whole
    )


def _whole(judged: Judged, weights: Values | None) -> Values:
    return judged.n_items.astype(np.float64) if weights is None else last_sum(np.maximum(weights, 0))


def _below(measure: Measure, judged: Judged) -> list[Values]:
    at_least = judged.at_least or (None,) * len(judged.query_ids)
    levels = [level for level in (measure["rel"], measure["partial"]) if level is not None]
    padded = [np.ones(judged.items.shape) for _ in levels]
    for i, of_query in enumerate(at_least):
        if of_query is None and judged.has_labels[i]:
            raise ValueError(NO_PROBABILITIES.format(measure))
        if of_query is not None:
            start, (n_docs, n_items) = int(judged.offsets[i]), of_query.shape[:2]
            for below, level in zip(padded, levels, strict=True):
                below[start : start + n_docs, :n_items] = misses(of_query, level)
    return padded


def _weight(reached: NDArray[np.bool_], weights: Values | None) -> Values:
    if weights is None:
        return np.asarray(np.count_nonzero(reached, axis=1), np.float64)
    return last_sum(weights * reached)


def _weights(measure: Measure, judged: Judged) -> Values | None:
    """The items' weights, padded with 0; None for equal weights."""
    if measure["weights"] == EQUAL:
        return None
    nothing = (None,) * len(judged.query_ids)
    if measure["weights"] == ITEM and judged.weights is None and judged.has_labels.any():
        raise ValueError(NO_WEIGHTS.format(measure))
    stated_weights, importances = judged.weights or nothing, judged.importances or nothing
    weights = np.zeros((len(judged.query_ids), judged.items.shape[1]), np.float64)
    for i, of_query in enumerate(importances):
        if of_query is None and measure["weights"] == ITEM:
            of_query = ("",) * int(judged.n_items[i])
        if of_query is not None:
            weights[i, : len(of_query)] = item_weights(measure["weights"], of_query, stated_weights[i])
        elif judged.has_labels[i]:
            raise ValueError(
                f"{measure} needs the importance of items, and these judgments carry none: give ratings "
                "of a bank whose items have it"
            )
    return weights


def _pool(judged: Judged) -> NDArray[np.integer]:
    """Each item's best rating of all labelled passages; shape (queries, items)."""
    best = np.full((len(judged.query_ids), judged.items.shape[1]), -1, judged.items.dtype)
    labelled = judged.labels != UNJUDGED
    for i in np.flatnonzero(judged.has_labels).tolist():
        span = slice(int(judged.offsets[i]), int(judged.offsets[i + 1]))
        best[i] = judged.items[span][labelled[span]].max(axis=0, initial=-1)
    return best


def _takes(measure: Measure) -> bool:
    """Whether a threshold for partial credit is below that for full credit."""
    return measure["partial"] is None or bool(measure["partial"] < measure["rel"])


_PARAMETERS = frozenset(("cutoff", "rel", "partial", "weights"))

MEASURES = (
    ColumnMeasure(
        "Cover",
        _PARAMETERS,
        computation,
        "all ([what they are](runs-to-leaderboard.md)), on [qrels that name items](trec-eval.md#from-python)",
        takes=_takes,
        on_items=True,
    ),
    ColumnMeasure(
        "nCover", _PARAMETERS, computation, "as Cover", depends_on_pool=True, takes=_takes, on_items=True
    ),
    ColumnMeasure(
        "ECover",
        _PARAMETERS,
        computation,
        "as Cover, on rows that carry probabilities: `track.qrels(probabilities=True)`",
        takes=_takes,
        on_items=True,
    ),
)
