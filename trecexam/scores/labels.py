"""Rubric labels: a passage's ratings on the query's items condensed to one relevance label.

Rubric-Qrels (EXAM Qrels) after Farzi & Dietz, "Pencils Down! Automatic Rubric-based Evaluation of
Retrieve/Generate Systems", ICTIR 2024, and "A Workbench for Autograding Retrieve/Generate Systems",
SIGIR 2024: the label is the passage's best rating over the items, or the number of items that it
reaches. Passages without any rating are unjudged: they get no label and no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import ir_measures
import numpy as np
from numpy.typing import NDArray

from converters.records import Qrel
from trecexam.scores.ratings import MISSING, QueryRatings

#: Stands where a pooled passage has no label.
UNJUDGED = int(np.iinfo(np.int32).min)
#: "expected" has the labels of "max"; beside them stand the gains of `trecexam.scores.expected.gains`.
LabelRule = Literal["max", "count", "expected"]


class RubricQrel(ir_measures.Qrel):
    """An `ir_measures.Qrel` that also carries the passage's rating on each item, which Cover needs.

    It equals a plain Qrel with the same four fields. `ratings` has one entry for each item of the
    query, in the bank's order: 0..5, or -1 where there is no rating. `importances` are "vital", "okay" or ""
    of these items, None where the bank says nothing of any; `weights` are those that the bank gives them, 1
    where it gives none, None where it gives none of any. `at_least` has for each item the probabilities of
    the rating 1, 2, .. 5 or better, which ECover needs; None where they were not asked for. `_make` gives a
    row without all of these.
    """

    ratings: tuple[int, ...]
    importances: tuple[str, ...] | None
    at_least: tuple[tuple[float, ...], ...] | None
    weights: tuple[float, ...] | None

    def __new__(
        cls,
        query_id: str,
        doc_id: str,
        relevance: int,
        iteration: str = "0",
        *,
        ratings: tuple[int, ...],
        importances: tuple[str, ...] | None = None,
        at_least: tuple[tuple[float, ...], ...] | None = None,
        weights: tuple[float, ...] | None = None,
    ) -> RubricQrel:
        row = super().__new__(cls, query_id, doc_id, relevance, iteration)
        row.ratings = ratings
        row.importances = importances
        row.weights = weights
        row.at_least = at_least
        return row

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return tuple(self), self._carried

    def _replace(self, **changes: Any) -> RubricQrel:
        return RubricQrel(**{**self._asdict(), **self._carried, **changes})

    @property
    def _carried(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("ratings", "importances", "weights", "at_least")}


def label_array(q: QueryRatings, rule: LabelRule, min_rating: int, min_answers: int) -> NDArray[np.int32]:
    """Return the label of each passage of a query, in the order of `q.doc_ids`.

    Args:
        rule: "max", and "expected", whose labels are the same: the min_answers-th highest rating of the
            passage over the items (with min_answers=1 its best), 0 where it has fewer ratings than that.
            "count": the number of items on which it is rated min_rating or better, 0 where that is less
            than min_answers.

    A rating that a person gave the passage as a whole replaces the items': with "max" it is the
    label; with "count" the label is 0 where it is below min_rating, else the number of items reached, but
    min_answers at the least.

    Returns:
        int32; `UNJUDGED` where a passage has no rating, of an item or as a whole.

    Raises:
        ValueError: an unknown rule, or min_answers below 1.
    """
    if min_answers < 1:
        raise ValueError(f"min_answers = {min_answers}: at least 1 needed")
    if rule in ("max", "expected"):
        found = _kth_highest(q.ratings, min_answers)
    elif rule == "count":
        reached = np.count_nonzero(q.ratings >= max(min_rating, 0), axis=1)
        found = np.where(reached >= min_answers, reached, 0).astype(np.int32)
    else:
        raise ValueError(f'unknown label rule {rule!r}; there are "max", "count" and "expected"')
    found[~(q.ratings >= 0).any(axis=1)] = UNJUDGED
    for doc_id, rating in q.human.items():
        row = q.doc_ids.index(doc_id)
        if rule != "count":
            found[row] = rating
        else:
            found[row] = max(int(reached[row]), min_answers) if rating >= min_rating else 0
    return found


def labels(
    q: QueryRatings, rule: LabelRule = "max", min_rating: int = 4, min_answers: int = 1
) -> dict[str, int]:
    """Return doc_id -> label of each passage that has a rating, see `label_array`."""
    found = label_array(q, rule, min_rating, min_answers).tolist()
    return {doc_id: label for doc_id, label in zip(q.doc_ids, found, strict=True) if label != UNJUDGED}


def binary_labels(q: QueryRatings, min_rating: int, min_answers: int = 1) -> dict[str, int]:
    """Return 1 for passages with min_answers ratings (or a person's) of min_rating or better, else 0."""
    return {doc_id: int(label > 0) for doc_id, label in labels(q, "count", min_rating, min_answers).items()}


def label_qrels(
    queries: Iterable[QueryRatings],
    rule: LabelRule = "max",
    min_rating: int = 4,
    min_answers: int = 1,
    *,
    binary: bool = False,
) -> Iterator[RubricQrel]:
    """Yield the labels as qrels rows, in the order of the queries and of their passages.

    The labels are those of `labels`, or with `binary` those of `binary_labels`, whatever the rule. A query
    without a rated passage has no row, so `ir_measures` leaves it out of its means; trecexam's own
    evaluation keeps it, with 0.
    """
    for q in queries:
        ratings = dict(zip(q.doc_ids, q.ratings.tolist(), strict=True))
        chances = {} if q.at_least is None else dict(zip(q.doc_ids, q.at_least.tolist(), strict=True))
        label_of = (
            binary_labels(q, min_rating, min_answers) if binary else labels(q, rule, min_rating, min_answers)
        )
        for doc_id, label in label_of.items():
            yield RubricQrel(
                q.query_id,
                doc_id,
                label,
                ratings=tuple(ratings[doc_id]),
                importances=q.importances,
                at_least=tuple(map(tuple, chances[doc_id])) if chances else None,
                weights=q.weights,
            )


def naming(ratings: NDArray[np.integer], rated: NDArray[np.bool_]) -> NDArray[np.integer]:
    """Return a query's ratings, with a 0 of the first rated passage for each item without a rating.

    Rows that are made of them name every item of the query, so that Cover can be computed from them.
    """
    nameless = ~(ratings >= 0).any(axis=0)
    if not nameless.any() or not rated.any():
        return ratings
    named = ratings.copy()
    named[rated.argmax(), nameless] = 0
    return named


def subtopic_qrels(q: QueryRatings, min_rating: int = 4) -> Iterator[Qrel]:
    """Diversity qrels as ndeval reads them: the iteration is the item's index, counted from 1.

    The relevance is 1 where the passage is rated min_rating or better on the item, else 0; there is a
    row only where there is a rating, and one for an item that no passage is rated on (`naming`). Rows are
    in the order of the items, then of the passages.
    """
    return item_qrels(q.query_id, q.doc_ids, reaching(naming(q.ratings, q.rated), min_rating))


def reaching(ratings: NDArray[np.integer], min_rating: int) -> NDArray[np.integer]:
    """Return 1 for ratings of min_rating or better, 0 for others, -1 where there is none."""
    return np.where(ratings >= 0, ratings >= max(min_rating, 0), MISSING)


def item_qrels(query_id: str, doc_ids: Sequence[str], ratings: NDArray[np.integer]) -> Iterator[Qrel]:
    """Every rating as a qrels row, in the order of the items; the iteration is the item, from 1."""
    items, docs = np.nonzero(ratings.T >= 0)
    for item, doc in zip(items.tolist(), docs.tolist(), strict=True):
        yield Qrel(query_id, doc_ids[doc], int(ratings[doc, item]), str(item + 1))


def _kth_highest(ratings: NDArray[np.int8], k: int) -> NDArray[np.int32]:
    """The k-th highest rating of each passage; 0 with fewer ratings."""
    n_docs, n_items = ratings.shape
    if k > n_items:
        return np.zeros(n_docs, np.int32)
    highest = ratings.max(axis=1) if k == 1 else np.sort(ratings, axis=1)[:, n_items - k]
    return np.maximum(highest, 0).astype(np.int32)
