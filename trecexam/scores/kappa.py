"""Agreement of two raters: Cohen's kappa, with an interval that keeps a query's passages together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.ratings import QueryRatings

Counts = NDArray[np.int64]
#: With fewer queries there is no interval: it would be too wide to say anything, and still miss too often.
MIN_QUERIES = 5


class Kappa(NamedTuple):
    """Agreement beyond chance, -1..1, and a 95% interval.

    Attributes:
        value: NaN where there is nothing to rate, or both raters give all passages the same one label.
        low, high: NaN where there is no interval: fewer than `MIN_QUERIES` queries, or a rater who gives
            all passages one label (kappa is then 0 whatever the other says).
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


def kappa(counts: Counts) -> Kappa:
    """Cohen's kappa of two raters who use the same k labels.

    kappa = (po - pe) / (1 - pe), with po the share of passages that both give the same label, and pe the
    share expected of raters with these marginals who don't look (Cohen, "A coefficient of agreement for
    nominal scales", Educational and Psychological Measurement 20, 1960).

    The interval is kappa -+ t * SE, cut to -1..1. SE is the large-sample standard error (Fleiss, Cohen &
    Everitt, "Large sample standard errors of kappa and weighted kappa", Psychological Bulletin 72, 1969:
    the delta method) with the deviations of a query's passages summed before they are squared, because
    passages of one query are not independent (Yang & Zhou, "Kappa statistic for clustered matched-pair
    data", Statistics in Medicine 33, 2014), and their sum times Q / (Q - 1) for Q queries. But for this
    factor it is the standard error of 1969 where each query has one passage.

    t is the 97.5% quantile of Student's t with as many degrees of freedom as queries count, at most Q - 1:
    with u a query's summed deviations, (sum u^2)^2 / sum u^4, the effective number of clusters (Carter,
    Schnepel & Steigerwald, "Asymptotic Behavior of a t-Test Robust to Cluster Heterogeneity", Review of
    Economics and Statistics 99(4), 2017). Where few queries have most of the relevant passages, SE is known
    of those few alone.

    Args:
        counts: shape (n_queries, k, k): how many of a query's passages the first rater gives label i and
            the second label j. Queries without passages do not count.
    """
    counts = counts[counts.any(axis=(1, 2))]
    table = counts.sum(axis=0)
    n = int(table.sum())
    if n == 0:
        return Kappa()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    if int(rows @ columns) == n * n:
        return Kappa()
    p, r, c = table / n, rows / n, columns / n
    po, pe = float(np.trace(p)), float(r @ c)
    value = (po - pe) / (1 - pe)
    n_queries = len(counts)
    if n_queries < MIN_QUERIES or rows.max() == n or columns.max() == n:
        return Kappa(value)
    from scipy.special import stdtrit

    # What a passage in cell (i, j) adds to n * kappa, to first order: d kappa / d p_ij.
    slope = (np.eye(len(p)) - po) / (1 - pe) - (1 - po) * (c[:, None] + r[None, :] - 2 * pe) / (1 - pe) ** 2
    of_query = (counts * slope).sum(axis=(1, 2))
    squares = of_query**2
    total = float(squares.sum())
    if total == 0:
        return Kappa(value, value, value)
    error = math.sqrt(n_queries / (n_queries - 1) * total) / n
    freedom = min(n_queries - 1, total**2 / float(squares @ squares))
    half_width = float(stdtrit(freedom, 0.975)) * error
    return Kappa(value, max(-1.0, value - half_width), min(1.0, value + half_width))


def weighted_kappa(table: Counts, power: int) -> float:
    """Weighted kappa of two raters who use the same k ordered labels, one step apart; -1..1.

    1 - observed / expected disagreement, where labels i and j disagree by |i - j| ** power: 1 is linear,
    2 quadratic weighting (Cohen, "Weighted kappa: nominal scale agreement provision for scaled
    disagreement or partial credit", Psychological Bulletin 70, 1968).

    Args:
        table: shape (k, k), counts.

    Returns:
        NaN where `kappa` is.
    """
    n = int(table.sum())
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    steps = np.abs(np.subtract.outer(np.arange(len(table)), np.arange(len(table)))) ** power
    expected = int((steps * np.outer(rows, columns)).sum())
    return 1 - n * int((steps * table).sum()) / expected if expected else math.nan


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

    def counts(self, n_first: int, n_second: int) -> Ints:
        """Return how often each pair of ratings is in each query; shape (queries, n_first, n_second)."""
        queries, query = np.unique(self.query, return_inverse=True)
        counts = np.zeros((len(queries), n_first, n_second), np.int64)
        np.add.at(counts, (query, self.first, self.second), 1)
        return counts

    def reached(self, min_first: int, min_second: int) -> RatedTwice:
        """Return 1 for ratings of min_rating or better, else 0."""
        reached = (self.first >= min_first).astype(np.int64), (self.second >= min_second).astype(np.int64)
        return replace(self, first=reached[0], second=reached[1])


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
    """Return the agreement on common ratings; without weighted kappas where they are not `graded`."""
    n, size = len(rated.first), int(max(rated.first.max(initial=0), rated.second.max(initial=0))) + 1
    counts = rated.counts(size, size)
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
) -> RatedTwice:
    """Return the ratings of items that both graders have, over the passages that both pooled.

    Args:
        items: query_id -> the places of an item among the first grader's items and among the second's. At
            least one query.
    """
    columns: list[tuple[Ints, Ints, Ints]] = []
    first_only = second_only = 0
    for number, (query_id, pairs) in enumerate(items.items()):
        sides = first[query_id], second[query_id]
        row_of = {doc_id: row for row, doc_id in enumerate(sides[1].doc_ids)}
        rows = [(row, row_of[doc_id]) for row, doc_id in enumerate(sides[0].doc_ids) if doc_id in row_of]
        a, b = (
            side.ratings[np.ix_(rows_of_side, items_of_side)].astype(np.int64)
            for side, rows_of_side, items_of_side in zip(
                sides,
                np.array(rows, np.int64).reshape(-1, 2).T,
                np.array(pairs, np.int64).reshape(-1, 2).T,
                strict=True,
            )
        )
        both = (a >= 0) & (b >= 0)
        columns.append((np.full(int(both.sum()), number, np.int64), a[both], b[both]))
        first_only += int((a >= 0).sum() - both.sum())
        second_only += int((b >= 0).sum() - both.sum())
    query, of_first, of_second = map(np.concatenate, zip(*columns, strict=True))
    return RatedTwice(query, of_first, of_second, first_only, second_only)
