"""Agreement of automatic labels with official judgments: contingency tables and Cohen's kappa.

The tables are those of Farzi & Dietz ("Pencils Down! Automatic Rubric-based Evaluation of
Retrieve/Generate Systems", ICTIR 2024) and of their workbench: graded, every label by every judgment;
merged, three groups of labels by three of judgments; binary, reached or not by relevant or not. Each label
has a kappa: this label or not, against its paired judgment or not. With min_rating 4, pairs and groups are as
published, for TREC DL 2019 with min_relevant 2, for TREC CAR Y3 with min_relevant 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trecexam.inputs.thresholds import Thresholds
from trecexam.scores.kappa import Kappa, RatedTwice, kappa, weighted_kappa

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Crosstab:
    """Label by judgment counts, and kappas.

    Attributes:
        name: "graded", "merged" or "binary".
        labels, judgments: what rows and columns mean, highest first: "5", "1..3", ">=4", "<2".
        counts: passages, of shape (len(labels), len(judgments)).
        paired: for each row the paired column, or None.
        kappas: for each row, kappa of this label or not against the paired judgment or not.
        kappa: kappa of the whole table if each label has an equal judgment, else NaN.
        linear, quadratic: weighted kappa of the whole table; NaN if `kappa` is NaN.
    """

    name: str
    labels: tuple[str, ...]
    judgments: tuple[str, ...]
    counts: Ints
    paired: tuple[int | None, ...]
    kappas: tuple[Kappa, ...]
    kappa: Kappa
    linear: float
    quadratic: float


@dataclass(frozen=True)
class Agreement:
    """The tables for one choice of thresholds.

    Attributes:
        accuracy, precision, recall: of the binary table, with the judgments as the truth; 0..1, NaN for an
            empty denominator.
    """

    thresholds: Thresholds
    graded: Crosstab
    merged: Crosstab
    binary: Crosstab
    accuracy: float
    precision: float
    recall: float

    @property
    def tables(self) -> tuple[Crosstab, Crosstab, Crosstab]:
        """The three tables: graded, merged, binary."""
        return self.graded, self.merged, self.binary


def agreement(pairs: RatedTwice, thresholds: Thresholds, judgments: Collection[int]) -> Agreement:
    """Return the tables and figures for these passages.

    Binary: labels that reach the threshold (min_rating; for "count" min_answers) or not, against
    judgments from min_relevant on or below.

    Merged: judgments above min_relevant, at it and below it; labels from min_rating on, from 1 on, and
    0, or for "count" more than min_answers, just as many and fewer. Where one side has not all three,
    the groups are those of the binary table.

    Graded: a label is paired with the lowest non-negative judgment of the group opposite its own group in the
    merged table.

    On the same scale labels are merged as judgments are, a label is paired with its equal, and the graded
    table has kappas as a whole, for which a negative judgment is 0.

    Args:
        pairs: (label, judgment) of the passages with both.
        thresholds: the label rule, the thresholds, and the scales.
        judgments: all official labels; one column each.
    """
    t = thresholds
    official = sorted(judgments, reverse=True)
    if t.rule != "count":
        automatic, reached = list(range(t.max_rating, -1, -1)), t.min_rating
        thirds = (reached, reached + 1) if t.same_scale else (1, reached)
    else:
        most = max(pairs.first.tolist(), default=0)
        automatic, reached = [*range(most, t.min_answers - 1, -1), 0], t.min_answers
        thirds = (reached, reached + 1)
    halves: Cuts = (reached,), (t.min_relevant,)
    merged: Cuts = thirds, (t.min_relevant, t.min_relevant + 1)
    if min(len(np.unique(_groups(*side))) for side in zip((automatic, official), merged, strict=True)) < 3:
        merged = halves
    # Both scales fall.
    first = np.searchsorted(-np.array(automatic), -pairs.first)
    second = np.searchsorted(-np.array(official), -pairs.second)
    counts = replace(pairs, first=first, second=second).counts(len(automatic), len(official))
    binary = _grouped("binary", counts, automatic, official, halves)
    (true, false), (missed, right) = binary.counts.tolist()
    return Agreement(
        t,
        _graded(counts, automatic, official, merged, same=t.same_scale),
        _grouped("merged", counts, automatic, official, merged),
        binary,
        _share(true + right, true + false + missed + right),
        _share(true, true + false),
        _share(true, true + missed),
    )


#: Lowest levels of the groups of labels, and of judgments; rising, one or two per side.
Cuts = tuple[tuple[int, ...], tuple[int, ...]]


def _groups(levels: Sequence[int], cuts: tuple[int, ...]) -> Ints:
    """Return the group of each level, 0 for the highest."""
    return len(cuts) - np.searchsorted(cuts, levels, side="right")


def _names(cuts: tuple[int, ...]) -> list[str]:
    """Return the names of the groups, the highest first."""
    low, high = cuts[0], cuts[-1]
    middle = [f"{low}..{high - 1}" if high - low > 1 else str(low)] * (len(cuts) - 1)
    return [f">={high}", *middle, f"<{low}"]


def _graded(
    counts: Ints, automatic: Sequence[int], official: Sequence[int], merged: Cuts, *, same: bool
) -> Crosstab:
    labels, judgments, levels = np.array(automatic), np.array(official), len(automatic)
    if same:
        # A label is paired with its equal, and a negative judgment is 0.
        square = _collapse(counts, np.arange(levels), levels - 1 - np.maximum(judgments, 0), levels)
        paired = [official.index(label) if label in official else None for label in automatic]
        return _crosstab("graded", map(str, labels), map(str, official), counts, paired, square)
    paired, of_judgment = [], _groups(official, merged[1])
    for group in _groups(automatic, merged[0]).tolist():
        against = judgments[of_judgment == group]
        lowest = min(against[against >= 0].tolist(), default=max(against.tolist(), default=None))
        paired.append(None if lowest is None else official.index(lowest))
    return _crosstab("graded", map(str, labels), map(str, official), counts, paired, None)


def _grouped(
    name: str, counts: Ints, automatic: Sequence[int], official: Sequence[int], cuts: Cuts
) -> Crosstab:
    labels, judgments = map(_names, cuts)
    rows, columns = map(_groups, (automatic, official), cuts)
    square = _collapse(counts, rows, columns, len(labels))
    return _crosstab(name, labels, judgments, square, range(len(labels)), square)


def _crosstab(
    name: str,
    labels: Iterable[str],
    judgments: Iterable[str],
    counts: Ints,
    paired: Sequence[int | None],
    square: Ints | None,
) -> Crosstab:
    """Return a table with the kappas of its rows, and the kappas of `square` for the whole."""
    rows, columns = np.arange(counts.shape[1]), np.arange(counts.shape[2])
    kappas = []
    for row, column in enumerate(paired):
        binary = None if column is None else _collapse(counts, rows != row, columns != column, 2)
        kappas.append(Kappa() if binary is None else kappa(binary))
    whole, linear, quadratic = Kappa(), math.nan, math.nan
    if square is not None:
        table = square.sum(axis=0)
        whole, linear, quadratic = kappa(square), weighted_kappa(table, 1), weighted_kappa(table, 2)
    tables = counts.sum(axis=0), tuple(paired), tuple(kappas)
    return Crosstab(name, tuple(labels), tuple(judgments), *tables, whole, linear, quadratic)


def _collapse(counts: Ints, rows: NDArray[Any], columns: NDArray[Any], k: int) -> Ints:
    """Return k x k counts: row i is added to row rows[i], column j to column columns[j]."""
    into = np.eye(k, dtype=np.int64)
    summed: Ints = into[rows.astype(np.intp)].T @ counts @ into[columns.astype(np.intp)]
    return summed


def _share(part: int, of: int) -> float:
    return part / of if of else math.nan
