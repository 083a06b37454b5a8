"""Scales and thresholds: which labels of one side correspond to which labels of the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.findings import Finding, Section, finding, table, with_interval
from trecexam.extensions.audit.records import ALPHA, AuditInputs, Floats, Rows, Side
from trecexam.results.table import Table
from trecexam.scores.columns import UNJUDGED
from trecexam.scores.kappa import Kappa, kappa

#: Minimum count of a label, and minimum share among labels above 0, to be no accident.
_USED, _SHARE = 10, 0.01
_LOW_KAPPA = 0.4


class Common(NamedTuple):
    """Passages that both sides judged: row indices, query indices, and both labels."""

    rows: NDArray[np.intp]
    query: NDArray[np.intp]
    first: Rows
    second: Rows


class Pair(NamedTuple):
    """A threshold on each side, with each query's 2 x 2 table of passages below and above it, and kappa."""

    first: int
    second: int
    counts: NDArray[np.int64]
    kappa: Kappa


def _value(pair: Pair) -> float:
    return -1.0 if math.isnan(pair.kappa.value) else pair.kappa.value


def scales(inputs: AuditInputs) -> Section:
    """Compare labels; with two sides also pairs of thresholds."""
    tables = {"labels": _labels_table(inputs.sides)}
    findings = [
        finding("nothing relevant", side.judged.labels[side.judged.labels != UNJUDGED].max(), side.name)
        for side in inputs.sides
        if not side.thresholds
    ]
    if len(inputs.sides) == 1:
        return findings, tables
    a, b = inputs.sides
    common = common_passages(inputs)
    findings += _unused(a, b, common)
    pairs = [] if inputs.larger else threshold_pairs(common, a, b, len(inputs.query_ids))
    if not len(common.rows):
        findings.append(finding("nothing in common", 0, a=a.name, b=b.name))
    elif pairs:
        best = max(pairs, key=_value)
        tables["thresholds"] = _pairs_table(a, b, pairs)
        findings += _stated(a, b, pairs, best)
    return findings, tables


def common_passages(inputs: AuditInputs) -> Common:
    """Return the passages that both sides judged."""
    a, b = (side.judged for side in inputs.sides)
    rows = np.flatnonzero((a.labels != UNJUDGED) & (b.labels != UNJUDGED))
    return Common(rows, a.query_of_row[rows], a.labels[rows], b.labels[rows])


def threshold_pairs(common: Common, a: Side, b: Side, n_queries: int) -> list[Pair]:
    """Return each threshold of one side with each of the other, kappa, and its interval over queries."""
    pairs = []
    for first in a.thresholds:
        for second in b.thresholds:
            cell = (common.query * 2 + (common.first >= first)) * 2 + (common.second >= second)
            counts = np.bincount(cell, minlength=n_queries * 4).reshape(-1, 2, 2).astype(np.int64)
            pairs.append(Pair(first, second, counts, kappa(counts)))
    return pairs


def is_better(best: Pair, other: Pair) -> bool:
    """Return True where the best pair's kappa is greater beyond chance: jackknife over queries."""
    from scipy.special import stdtrit

    def left_out(pair: Pair) -> Floats:
        rest = pair.counts.sum(axis=0) - pair.counts
        return np.array([kappa(each[None]).value for each in rest])

    n, without = len(best.counts), left_out(best) - left_out(other)
    if math.isnan(other.kappa.value):
        return True
    if n < 5 or not np.isfinite(without).all():
        return False
    error = math.sqrt(n - 1) * float(without.std())
    return bool(best.kappa.value - other.kappa.value > stdtrit(n - 1, 1 - ALPHA) * error)


def _unused(a: Side, b: Side, common: Common) -> Iterator[Finding]:
    """Yield findings on labels that only one side uses, and on scales of different length."""
    sides = ((a, common.first, b, common.second), (b, common.second, a, common.first))
    for side, side_labels, other, other_labels in sides:
        labels, counts = np.unique(
            other_labels[(other_labels >= 0) & (other_labels < side_labels.max(initial=0))],
            return_counts=True,
        )
        missed = ~np.isin(labels, side_labels) & (counts >= max(_USED, _SHARE * (other_labels > 0).sum()))
        if missed.any():
            names = ", ".join(map(str, labels[missed].tolist()))
            n = int(counts[missed].sum())
            yield finding("unused label", labels[missed][0], side.name, labels=names, other=other.name, n=n)
    top_a, top_b = (int(of_side.max(initial=0)) for of_side in (common.first, common.second))
    if top_a != top_b:
        yield finding("other scale", top_b - top_a, a=a.name, b=b.name, top_a=top_a, top_b=top_b)


def _stated(a: Side, b: Side, pairs: Sequence[Pair], best: Pair) -> Iterator[Finding]:
    """Yield findings on the pair of thresholds to report."""
    k = best.kappa
    named = f"{a.name} >= {best.first} with {b.name} >= {best.second}"
    words = {"pair": named, "kappa": f"kappa {with_interval(k.value, k.low, k.high)}"}
    about = f"{best.first},{best.second}"
    equal = max((pair for pair in pairs if pair.first == pair.second), key=_value, default=best)
    if equal is not best and is_better(best, equal):
        yield finding("threshold", k.value - equal.kappa.value, about, equal=equal.kappa.value, **words)
    else:
        yield finding("agreement", k.value, about, **words)
    if k.high < _LOW_KAPPA:
        yield finding("low agreement", k.value, high=k.high)


def _labels_table(sides: Sequence[Side]) -> Table:
    labels_by_side = [side.judged.labels[side.judged.labels != UNJUDGED] for side in sides]
    labels = np.unique(np.concatenate(labels_by_side))
    counts: dict[str, Any] = {
        f"{side.name} passages": [int((of_side == label).sum()) for label in labels]
        for side, of_side in zip(sides, labels_by_side, strict=True)
    }
    return table("Passages with each label", 1, {"label": list(map(str, labels.tolist())), **counts})


def _pairs_table(a: Side, b: Side, pairs: Sequence[Pair]) -> Table:
    tables = np.stack([pair.counts.sum(axis=0) for pair in pairs])
    columns = {
        f"{a.name} from": [pair.first for pair in pairs],
        f"{b.name} from": [pair.second for pair in pairs],
        "kappa": [pair.kappa.value for pair in pairs],
        "kappa.low": [pair.kappa.low for pair in pairs],
        "kappa.high": [pair.kappa.high for pair in pairs],
        "equal": tables.trace(axis1=1, axis2=2) / np.maximum(tables.sum(axis=(1, 2)), 1),
        f"{a.name} relevant": tables[:, 1].sum(axis=1),
        f"{b.name} relevant": tables[:, :, 1].sum(axis=1),
        "passages": tables.sum(axis=(1, 2)),
    }
    return table("Agreement at each pair of thresholds", 2, columns)
