"""Rubric-Cover as measures of ir_measures: `Cover(rel=t)@k`, `nCover(rel=t)@k`, `ECover(rel=t)@k`.

All have a weighted form, `Cover(rel=5,partial=3,weights='vital')@20`, which gives nuggetizer's scores. With
`weights='item'`, the weights of the bank, Cover gives ResearchRubrics' compliance score.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from ir_measures import Measure, ParamInfo, measures
from ir_measures.providers import base as provider_base
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

DEFAULT_REL = 4
#: Weights by name: what a vital item weighs, and any other. An item without an importance is like an okay
#: one, as it is for nuggetizer, which calls nuggets okay that its model could not tell.
BY_IMPORTANCE = {"equal": (1.0, 1.0), "vital": (1.0, 0.0), "importance": (1.0, 0.5)}
EQUAL = "equal"
#: The weights that the bank gives its items.
ITEM = "item"


class _Positive(ParamInfo):
    """An int of at least 1, or the default."""

    def validate(self, value: Any) -> bool:
        if value is provider_base.NOT_PROVIDED or value is self.default:
            return True
        return isinstance(value, int) and not isinstance(value, bool) and value >= 1


class _CoverBase(Measure):
    SUPPORTED_PARAMS = {  # noqa: RUF012
        "cutoff": _Positive(dtype=int, desc="ranking cutoff threshold"),  # type: ignore[no-untyped-call]
        "rel": _Positive(  # type: ignore[no-untyped-call]
            dtype=int, default=DEFAULT_REL, desc="rating from which a passage reaches an item (inclusive)"
        ),
        "partial": _Positive(  # type: ignore[no-untyped-call]
            dtype=int, default=None, desc="rating from which an item has half the credit (inclusive)"
        ),
        "weights": ParamInfo(  # type: ignore[no-untyped-call]
            dtype=str,
            choices=[*BY_IMPORTANCE, ITEM],
            default=EQUAL,
            desc="what items weigh by their importance, or in the bank",
        ),
    }

    def validate_params(self) -> None:
        """Refuse parameters, as any measure does.

        Raises:
            AssertionError: a parameter is impossible, `partial` is not below `rel`, or it is nCover with
                `weights='item'`, some of which count against: no pool has a best of these.
        """
        super().validate_params()  # type: ignore[no-untyped-call]
        partial, rel = self["partial"], self["rel"]
        assert partial is None or partial < rel, f"partial={partial} is not below rel={rel}"
        assert self["weights"] != ITEM or self.NAME != "nCover", f"weights={ITEM!r} are of Cover alone"

    def __repr__(self) -> str:
        """The name, always with `rel`, and with texts in quotes."""
        return self._name

    def __eq__(self, other: object) -> bool:
        """Return True for a measure with the same parameters, whatever it prints."""
        return isinstance(other, _CoverBase) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    @cached_property
    def _name(self) -> str:
        # Measures are compared and hashed by it, several times for each value.
        params = {key: self[key] for key in ("rel", "partial", "weights")} | self.params
        inner = ",".join(
            f"{key}={value!r}"
            for key, value in params.items()
            if key != self.AT_PARAM and (key, value) not in (("partial", None), ("weights", EQUAL))
        )
        at = f"@{params[self.AT_PARAM]!r}" if self.AT_PARAM in params else ""
        return f"{self.NAME}({inner}){at}"


class _Cover(_CoverBase):
    """Rubric-Cover (EXAM Cover): the share of the query's items that the first passages reach.

    `Cover(rel=t)@k` is |union over the first k passages of {items rated t or better}| / |items of the
    query|, 0..1. `rel` is 4 unless given; without a cutoff the whole ranking counts.

    - `partial=p`: an item whose best rating is p or better, but below `rel`, counts a half.
    - `weights='vital'`: vital items alone count. `weights='importance'`: a vital item counts 1, any other
      0.5. The share is one of the sum of weights; a query without vital items has 0, as for nuggetizer.
    - `weights='item'`: each item has the weight that the bank gives it, negative where it counts against; 1
      where the bank gives none. Cover is (sum of w_i * c_i) / (sum of the positive w_i), where c_i is 1, 1/2
      or 0 as above: at most 1, below 0 where more is reached that counts against, and 0 without a positive
      weight.

    Of nuggetizer's assignments, where support is read as the rating 5 and partial support as 3, its scores
    are Cover with the parameters of `NUGGET_SCORES`, and so is ResearchRubrics' compliance score.

    Qrels, by what they are:

    - rows that carry `ratings` (`trecexam.scores.RubricQrel`), and data frames with a row for each passage
      and item (`Track.export.qrels_frame`): the items are those of the test bank. They alone carry the items'
      importance and weights, without which all weights but equal ones are refused;
    - other rows with the item as iteration and the rating as relevance: the items are the distinct
      iterations among the query's rows, which have to name every item of the query. A data frame's column
      `iteration` is the same. Rows of 0 and 1 (`rubric.subtopics.qrels`) say which items a passage reaches:
      `rel` must be 1;
    - rows that name no item (iteration 0, Q0 or none) and dicts have labels of passages alone, from which
      Cover cannot be computed: ValueError.

    .. cite.arxiv:: 2402.00309
    .. cite.arxiv:: 2411.09607
    .. cite.arxiv:: 2511.07685
    """

    __name__ = "Cover"
    NAME = "Cover"
    PRETTY_NAME = "Rubric-Cover"
    SHORT_DESC = "The share of a query's test bank items that the top k passages reach."


class _nCover(_CoverBase):  # noqa: N801
    """Rubric-Cover divided by the best that the pool allows.

    As `Cover`, but divided by the number of items that any passage of the qrels reaches, with the same
    credits and weights; 0 where none is reached. 0..1, and never below Cover.

    .. cite.arxiv:: 2402.00309
    """

    __name__ = "nCover"
    NAME = "nCover"
    PRETTY_NAME = "Normalised Rubric-Cover"
    SHORT_DESC = "The share of the items that any pooled passage reaches, that the top k passages reach."


class _ECover(_CoverBase):
    """The expected Rubric-Cover with uncertain ratings.

    `ECover(rel=t)@k` is the mean over the items of 1 - prod over the first k passages of (1 - P(rated t or
    better on the item)), 0..1: what Cover is on average, were the ratings of different passages drawn
    independently. With `partial` and `weights` it is the expected value of that Cover, too. Where all
    probabilities are 0 or 1 it is Cover.

    Qrels have to carry the probabilities: rows of `Track.qrels(probabilities=True)`.

    .. cite.arxiv:: 2402.00309
    """

    __name__ = "ECover"
    NAME = "ECover"
    PRETTY_NAME = "Expected Rubric-Cover"
    SHORT_DESC = "The expected share of a query's test bank items that the top k passages reach."


class _NuggetScore(_Cover):
    """A Cover that prints nuggetizer's name of its parameters: `vital_score@20`."""

    def __repr__(self) -> str:
        """The name in `NUGGET_SCORES`; other parameters as those of Cover."""
        params = {key: value for key, value in self.params.items() if key != self.AT_PARAM}
        name = next((name for name, each in NUGGET_SCORES.items() if each == params), None)
        return self._name if name is None else name + self._name[self._name.index(")") + 1 :]


Cover = _Cover()  # type: ignore[no-untyped-call]
nCover = _nCover()  # type: ignore[no-untyped-call]  # noqa: N816
ECover = _ECover()  # type: ignore[no-untyped-call]
#: nuggetizer's names of its scores -> the parameters of Cover. The weighted ones are the paper's W and W
#: strict (arXiv:2411.09607), which nuggetizer does not compute; compliance is ResearchRubrics'
#: (arXiv:2511.07685).
NUGGET_SCORES: dict[str, dict[str, Any]] = {
    "all_score": {"rel": 5, "partial": 3},
    "strict_all_score": {"rel": 5},
    "vital_score": {"rel": 5, "partial": 3, "weights": "vital"},
    "strict_vital_score": {"rel": 5, "weights": "vital"},
    "weighted_score": {"rel": 5, "partial": 3, "weights": "importance"},
    "strict_weighted_score": {"rel": 5, "weights": "importance"},
    "compliance_score": {"rel": 5, "partial": 3, "weights": ITEM},
    "strict_compliance_score": {"rel": 5, "weights": ITEM},
}
measures.registry.update({each.NAME: each for each in (Cover, nCover, ECover)})
measures.registry.update({name: _NuggetScore(**each) for name, each in NUGGET_SCORES.items()})  # type: ignore[no-untyped-call]


def best_ratings(items: NDArray[np.integer], rows: NDArray[np.int32]) -> NDArray[np.integer]:
    """Return each item's best rating over the passages of a ranking, -1 without one; shape (rankings, items).

    `rows` has each passage's row in `Judged.items`, -1 for none; shape (rankings, passages).
    """
    best: NDArray[np.integer] = items[rows].max(axis=1, initial=-1)
    return best


def credits_of(best: NDArray[np.integer], rel: int, partial: int | None, weights: Values | None) -> Values:
    """Return each query's sum of w_i * c_i over its items, see `cover`; added from left to right."""
    full = _weight(best >= rel, weights)
    return full if partial is None else (full + _weight(best >= partial, weights)) / 2


def cover(covered: Values, whole: Values) -> Values:
    """Return the credit at the hits / that of all items (Cover) or of the pool's best (nCover); 0/0 is 0.

    With w_i the weights of the items, Cover is sum of w_i * c_i / sum of the positive w_i, see `_Cover`: the
    EXAM Cover of Sander & Dietz, "EXAM: How to Evaluate Retrieve-and-Generate Systems for Users Who Do Not
    (Yet) Know What They Want", DESIRES 2021. For a single passage, a whole answer, it is the nugget scores of
    `calculate_nugget_scores` in nuggetizer's code.
    """
    return np.where(covered == 0, 0.0, ratio(covered, whole))


def expected_credits(below: Sequence[Values], rows: NDArray[np.int32], weights: Values | None) -> Values:
    """Return each query's expected value of `credits_of` at the hits, whose ratings are independent.

    With `partial` it is the mean of that of `rel` and of `partial`: c_i is the mean of whether either is
    reached.

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
    """Compute Cover, nCover or ECover@k; ValueError where the judgments lack what the measure needs."""
    rel, partial = measure["rel"], measure["partial"]
    items, weights = judged.items, _weights(measure, judged)
    judged.item_rows.check(measure)
    whole = judged.n_items.astype(np.float64) if weights is None else last_sum(np.maximum(weights, 0))
    if measure.NAME == "ECover":
        below = _below(measure, judged)
        return lambda hits: ratio(expected_credits(below, considered(measure, hits).rows, weights), whole)
    if measure.NAME == "nCover":
        whole = credits_of(_pool(judged), rel, partial, weights)
    return lambda hits: cover(
        credits_of(best_ratings(items, considered(measure, hits).rows), rel, partial, weights), whole
    )


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
    """Return each item's best rating of all labelled passages; shape (queries, items)."""
    labelled = judged.labels != UNJUDGED
    best = np.full((len(judged.query_ids), judged.items.shape[1]), -1, judged.items.dtype)
    np.maximum.at(best, judged.query_of_row[labelled], judged.items[:-1][labelled])
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
