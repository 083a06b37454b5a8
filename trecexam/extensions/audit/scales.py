"""Scales and thresholds: which labels of one side correspond to which labels of the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.findings import Finding, Section, finding, table, with_interval
from trecexam.extensions.audit.records import ALPHA, AuditInputs
from trecexam.results.table import Table
from trecexam.scores.kappa import Kappa, kappa

#: Minimum count of a label, and minimum share among labels above 0, to be no accident.
_USED, _SHARE = 10, 0.01
_LOW_KAPPA = 0.4


class Pair(NamedTuple):
    """A threshold on each side, with each query's 2 x 2 table of passages below and above it, and kappa."""

    first: int
    second: int
    counts: NDArray[np.int64]
    kappa: Kappa


def scales(inputs: AuditInputs) -> Section:
    """Compare labels; with two sides also pairs of thresholds."""
    labels = np.unique(np.concatenate([side.labels for side in inputs.sides]))
    counts = {f"{side.name} passages": (side.labels == labels[:, None]).sum(axis=1) for side in inputs.sides}
    columns = {"label": list(map(str, labels.tolist())), **counts}
    tables = {"labels": table("Passages with each label", 1, columns)}
    without = [side for side in inputs.sides if not side.thresholds]
    findings = [finding("nothing relevant", side.labels.max(), side.name) for side in without]
    if len(inputs.sides) == 1:
        return findings, tables
    findings += _unused(inputs)
    if not len(inputs.common):
        a, b = (side.name for side in inputs.sides)
        findings.append(finding("nothing in common", 0, a=a, b=b))
    elif not inputs.larger and (pairs := threshold_pairs(inputs)):
        findings += _stated(inputs, pairs)
        tables["thresholds"] = _pairs_table(inputs, pairs)
    return findings, tables


def threshold_pairs(inputs: AuditInputs) -> list[Pair]:
    """Return each threshold of one side with each of the other, kappa, and its interval over queries."""
    a, b = inputs.sides
    labels_a, labels_b = (side.judged.labels[inputs.common] for side in inputs.sides)
    query = a.judged.query_of_row[inputs.common]
    pairs = []
    for first, second in itertools.product(a.thresholds, b.thresholds):
        cell = (query * 2 + (labels_a >= first)) * 2 + (labels_b >= second)
        counts = np.bincount(cell, minlength=inputs.n_queries * 4).reshape(-1, 2, 2).astype(np.int64)
        pairs.append(Pair(first, second, counts, kappa(counts)))
    return pairs


def is_better(best: Pair, other: Pair) -> bool:
    """Return True where the best pair's kappa is greater beyond chance: jackknife over queries."""
    from scipy.special import stdtrit

    if math.isnan(other.kappa.value):
        return True
    n = len(best.counts)
    left_out = (pair.counts.sum(axis=0) - pair.counts for pair in (best, other))
    of_best, of_other = ([kappa(counts[None]).value for counts in of_pair] for of_pair in left_out)
    without = np.array(of_best) - of_other
    if n < 5 or not np.isfinite(without).all():
        return False
    error = math.sqrt(n - 1) * float(without.std())
    return bool(best.kappa.value - other.kappa.value > stdtrit(n - 1, 1 - ALPHA) * error)


def _unused(inputs: AuditInputs) -> Iterator[Finding]:
    """Yield findings on labels that only one side uses, and on scales of different length."""
    a, b = inputs.sides
    labels_of = {side: side.judged.labels[inputs.common] for side in inputs.sides}
    top_a, top_b = (int(labels_of[side].max(initial=0)) for side in inputs.sides)
    for side, other, top in ((a, b, top_a), (b, a, top_b)):
        labels_of_other = labels_of[other]
        inside = labels_of_other[(labels_of_other >= 0) & (labels_of_other < top)]
        labels, counts = np.unique(inside, return_counts=True)
        is_used = counts >= max(_USED, _SHARE * (labels_of_other > 0).sum())
        missed = ~np.isin(labels, labels_of[side]) & is_used
        if missed.any():
            names = ", ".join(map(str, labels[missed].tolist()))
            n = int(counts[missed].sum())
            yield finding("unused label", labels[missed][0], side.name, labels=names, other=other.name, n=n)
    if top_a != top_b:
        yield finding("other scale", top_b - top_a, a=a.name, b=b.name, top_a=top_a, top_b=top_b)


def _stated(inputs: AuditInputs, pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Yield findings on the pair of thresholds to report."""

    def value(pair: Pair) -> float:
        return -1.0 if math.isnan(pair.kappa.value) else pair.kappa.value

    a, b = (side.name for side in inputs.sides)
    best = max(pairs, key=value)
    k = best.kappa
    words = {"pair": f"{a} >= {best.first} with {b} >= {best.second}", "kappa": f"kappa {with_interval(*k)}"}
    about = f"{best.first},{best.second}"
    equal = max((pair for pair in pairs if pair.first == pair.second), key=value, default=best)
    if equal is not best and is_better(best, equal):
        yield finding("threshold", k.value - equal.kappa.value, about, equal=equal.kappa.value, **words)
    else:
        yield finding("agreement", k.value, about, **words)
    if k.high < _LOW_KAPPA:
        yield finding("low agreement", k.value, high=k.high)


def _pairs_table(inputs: AuditInputs, pairs: Sequence[Pair]) -> Table:
    a, b = (side.name for side in inputs.sides)
    tables = np.stack([pair.counts.sum(axis=0) for pair in pairs])
    columns = {
        f"{a} from": [pair.first for pair in pairs],
        f"{b} from": [pair.second for pair in pairs],
        "kappa": [pair.kappa.value for pair in pairs],
        "kappa.low": [pair.kappa.low for pair in pairs],
        "kappa.high": [pair.kappa.high for pair in pairs],
        "equal": tables.trace(axis1=1, axis2=2) / np.maximum(tables.sum(axis=(1, 2)), 1),
        f"{a} relevant": tables[:, 1].sum(axis=1),
        f"{b} relevant": tables[:, :, 1].sum(axis=1),
        "passages": tables.sum(axis=(1, 2)),
    }
    return table("Agreement at each pair of thresholds", 2, columns)
