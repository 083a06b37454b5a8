"""Agreement of two raters on labels, on ratings, and by item.

Cohen's kappa with the interval of `trecexam.scores.kappa`, which knows that passages of a query belong
together. Graded: the label or rating itself, where both scales are equally long. Binary: whether it reaches
a min_rating.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.kappa import Kappa, kappa, weighted_kappa
from trecexam.scores.ratings import QueryRatings

Ints = NDArray[np.int64]
#: query_id -> doc_id, or whatever else is labelled -> label
Labels = Mapping[str, Mapping[Any, int]]


@dataclass(frozen=True, eq=False)
class RatedTwice:
    """Ratings that both graders gave.

    Attributes:
        query: of each, the number of its query.
        first, second: what either said, 0 or more.
        first_only, second_only: how many others only one of them rated.
    """

    query: Ints
    first: Ints
    second: Ints
    first_only: int
    second_only: int

    def table(self, size: int) -> Ints:
        """The confusion matrix, shape (size, size)."""
        counts = np.zeros((size, size), np.int64)
        np.add.at(counts, (self.first, self.second), 1)
        return counts

    def reached(self, min_first: int, min_second: int) -> RatedTwice:
        """1 for ratings of min_rating or better, else 0."""
        first, second = (
            (self.first >= min_first).astype(np.int64),
            (self.second >= min_second).astype(np.int64),
        )
        return replace(self, first=first, second=second)


@dataclass(frozen=True)
class RaterAgreement:
    """The agreement of two graders.

    Attributes:
        n: what both rated.
        first_only, second_only: what only one of them rated, and what does not count.
        agreement: the share of n that both say the same of, 0..1; NaN where n is 0.
        kappa: Cohen's.
        linear, quadratic: weighted kappa of graded ratings; NaN of binary ones.
    """

    n: int
    first_only: int
    second_only: int
    agreement: float
    kappa: Kappa
    linear: float = math.nan
    quadratic: float = math.nan


def rater_agreement(rated: RatedTwice, *, graded: bool) -> RaterAgreement:
    """The agreement on common ratings.

    Args:
        graded: False for ratings that are 0 and 1 only, without weighted kappas.
    """
    n, size = len(rated.first), int(max(rated.first.max(initial=0), rated.second.max(initial=0))) + 1
    queries, query = np.unique(rated.query, return_inverse=True)
    counts = np.zeros((len(queries), size, size), np.int64)
    np.add.at(counts, (query, rated.first, rated.second), 1)
    table = counts.sum(axis=0)
    return RaterAgreement(
        n,
        rated.first_only,
        rated.second_only,
        float(np.trace(table)) / n if n else math.nan,
        kappa(counts),
        *((weighted_kappa(table, 1), weighted_kappa(table, 2)) if graded else ()),
    )


def labels_of_both(first: Labels, second: Labels) -> RatedTwice:
    """Return the labels of passages that both labelled."""
    rows: list[tuple[int, int, int]] = []
    for number, query_id in enumerate(sorted(first.keys() | second.keys())):
        left, right = first.get(query_id, {}), second.get(query_id, {})
        rows += [(number, left[doc], right[doc]) for doc in sorted(left.keys() & right.keys())]
    query, left_labels, right_labels = np.array(rows, np.int64).reshape(-1, 3).T
    first_only, second_only = (sum(map(len, side.values())) - len(rows) for side in (first, second))
    return RatedTwice(query, left_labels, right_labels, first_only, second_only)


def ratings_of_both(
    first: Mapping[str, QueryRatings],
    second: Mapping[str, QueryRatings],
    items: Mapping[str, Sequence[tuple[int, int]]],
) -> Iterator[tuple[str, int, RatedTwice]]:
    """The ratings of each item that both graders have, over the passages that both pooled.

    Args:
        items: query_id -> the places of an item among the first grader's items and among the second's.

    Yields:
        (query_id, the item's place among the first's, its ratings); queries are numbered as in `items`.
    """
    for number, (query_id, item_pairs) in enumerate(items.items()):
        left, right = first[query_id], second[query_id]
        row_of = {doc_id: row for row, doc_id in enumerate(right.doc_ids)}
        pairs = [(row, row_of[doc_id]) for row, doc_id in enumerate(left.doc_ids) if doc_id in row_of]
        left_rows, right_rows = np.array(pairs, np.int64).reshape(-1, 2).T
        for item_index, right_place in item_pairs:
            a = left.ratings[left_rows, item_index].astype(np.int64)
            b = right.ratings[right_rows, right_place].astype(np.int64)
            both = (a >= 0) & (b >= 0)
            only = (
                int((ratings >= 0).sum() - both.sum())
                for ratings in (left.ratings[:, item_index], right.ratings[:, right_place])
            )
            query = np.full(int(both.sum()), number, np.int64)
            yield query_id, item_index, RatedTwice(query, a[both], b[both], *only)


def together(parts: Sequence[RatedTwice]) -> RatedTwice:
    """All of these combined."""
    none = np.empty(0, np.int64)
    return RatedTwice(
        np.concatenate([none, *(part.query for part in parts)]),
        np.concatenate([none, *(part.first for part in parts)]),
        np.concatenate([none, *(part.second for part in parts)]),
        sum(part.first_only for part in parts),
        sum(part.second_only for part in parts),
    )
