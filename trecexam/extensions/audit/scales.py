"""Scales and thresholds: which label of one side says what which label of the other side says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.arithmetic.choices import MOST_THRESHOLDS
from trecexam.extensions.audit.records import ALPHA, AuditInputs, Finding, Labels, Part, Side
from trecexam.scores.columns import UNJUDGED
from trecexam.scores.kappa import Kappa, kappa
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural, shorten_list

#: A label that one side gives to this many of the common passages, and this share, is not there by chance.
_USED, _SHARE = 10, 0.01
#: Times that the judge's decisions are dealt anew.
_DEALS = 1999
_LOW_KAPPA = 0.4


class Common(NamedTuple):
    """Passages that both sides judged: their query's place, and their two labels."""

    query: NDArray[np.intp]
    first: Labels
    second: Labels


class Pair(NamedTuple):
    """A threshold on each side, and how far they agree.

    Attributes:
        counts: shape (queries, 2, 2): how many passages are relevant to neither or one or both.
    """

    first: int
    second: int
    counts: NDArray[np.int64]
    kappa: Kappa


def scales(inputs: AuditInputs) -> Part:
    """Labels of each side; of two sides the pairs of thresholds, and how they drift over queries."""
    if len(inputs.sides) == 1:
        return Part((), {"labels": _labels_table(inputs.sides)})
    a, b = inputs.sides
    common = common_passages(a, b)
    tables = {"labels": _labels_table(inputs.sides)}
    findings = list(_unused(a, b, common))
    pairs = threshold_pairs(common, a, b, len(inputs.query_ids))
    if not pairs:
        return Part(tuple(findings), tables)
    best = max(pairs, key=lambda pair: -1.0 if math.isnan(pair.kappa.value) else pair.kappa.value)
    tables["thresholds"] = _pairs_table(a, b, pairs)
    findings.extend(_stated(a, b, pairs, best))
    drift, drift_table = _drift(inputs, common, best)
    tables["drift"] = drift_table
    return Part((*findings, *drift), tables)


def common_passages(a: Side, b: Side) -> Common:
    """What both sides judged."""
    both = (a.judged.labels != UNJUDGED) & (b.judged.labels != UNJUDGED)
    return Common(a.judged.query_of_row[both], a.judged.labels[both], b.judged.labels[both])


def threshold_pairs(common: Common, a: Side, b: Side, n_queries: int) -> list[Pair]:
    """Each threshold of one side with each of the other, with kappa and its interval over queries."""
    found = []
    for first in a.thresholds[:MOST_THRESHOLDS]:
        for second in b.thresholds[:MOST_THRESHOLDS]:
            cell = (common.query * 2 + (common.first >= first)) * 2 + (common.second >= second)
            counts = np.bincount(cell, minlength=n_queries * 4).reshape(-1, 2, 2).astype(np.int64)
            found.append(Pair(first, second, counts, kappa(counts)))
    return found


def better_by(best: Pair, other: Pair, tests: int) -> bool:
    """Whether the best pair's kappa is greater by more than chance: jackknife over queries, Bonferroni."""
    from scipy.special import stdtrit

    difference = best.kappa.value - other.kappa.value
    if math.isnan(other.kappa.value):
        return True
    without = np.array([_left_out(best, i) - _left_out(other, i) for i in range(len(best.counts))])
    n = len(without)
    if n < 5 or not np.isfinite(without).all():
        return False
    error = math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    return bool(difference > stdtrit(n - 1, 1 - ALPHA / max(1, tests)) * error)


def _left_out(pair: Pair, query: int) -> float:
    rest = pair.counts.sum(axis=0) - pair.counts[query]
    return kappa(rest[None]).value


def _unused(a: Side, b: Side, common: Common) -> list[Finding]:
    """Labels that one side never gives, though the other does."""
    found = []
    tops = [int(of_side.max(initial=0)) for of_side in (common.first, common.second)]
    for side, own, other, others in ((a, common.first, b, common.second), (b, common.second, a, common.first)):
        top = int(own.max(initial=0))
        given = set(np.unique(own).tolist())
        labels, counts = np.unique(others[others >= 0], return_counts=True)
        often = [
            (int(label), int(count))
            for label, count in zip(labels, counts, strict=True)
            if count >= max(_USED, _SHARE * len(others)) and label not in given
        ]
        if inside := [(label, count) for label, count in often if label < top]:
            names = ", ".join(str(label) for label, _ in inside)
            n = sum(count for _, count in inside)
            found.append(
                Finding(
                    "scales",
                    "unused label",
                    side.name,
                    f"{side.name} never gives {names}, which {other.name} gives to {plural(n, 'passage')}.",
                    float(inside[0][0]),
                    "A label that is never given makes two thresholds one, and gains of nDCG too far apart.",
                    "Look at the prompt or the guidelines; state a threshold on each side, not one for both.",
                    2,
                )
            )
    if tops[0] != tops[1]:
        found.append(
            Finding(
                "scales",
                "other scale",
                "",
                f"The scales differ: {a.name} goes up to {tops[0]}, {b.name} to {tops[1]}.",
                float(tops[1] - tops[0]),
                "nDCG takes labels as gains, so the same passage weighs otherwise on each side.",
                "Compare leaderboards by rank, or binary ones with the thresholds below.",
                2,
            )
        )
    return found


def _stated(a: Side, b: Side, pairs: Sequence[Pair], best: Pair) -> list[Finding]:
    """The pair that a paper should state; and whether equal numbers would mislead."""
    k = best.kappa
    named = f"{a.name} >= {best.first} with {b.name} >= {best.second}"
    stated = f"kappa {k.value:.2f} [{k.low:.2f}, {k.high:.2f}]"
    tests = len({pair.second for pair in pairs}) - 1
    equal = next((p for p in pairs if p.first == p.second == best.first), None)
    found = []
    if equal is not None and equal is not best and better_by(best, equal, tests):
        found.append(
            Finding(
                "scales",
                "threshold",
                f"{best.first},{best.second}",
                f"Compare {named}: {stated}; the same number on both sides gives {equal.kappa.value:.2f}.",
                k.value - equal.kappa.value,
                "The difference is beyond chance (jackknife over queries): the sides use their scales "
                "otherwise.",
                f"State the pair ({best.first}, {best.second}), and map labels before gains are compared.",
                3,
            )
        )
    else:
        found.append(
            Finding(
                "scales",
                "agreement",
                f"{best.first},{best.second}",
                f"The sides agree best at {named}: {stated}.",
                k.value,
                f"Of {plural(len(pairs), 'pair')} of thresholds; the interval is over queries.",
                "State this pair and its interval.",
                1,
            )
        )
    if k.high < _LOW_KAPPA:
        found.append(
            Finding(
                "scales",
                "low agreement",
                "",
                f"Even at the best pair of thresholds kappa is {k.value:.2f}, at most {k.high:.2f}.",
                k.value,
                "Labels of single passages cannot stand for each other, whatever leaderboards say.",
                "Use the second set for leaderboards alone, and read the swaps below.",
                2,
            )
        )
    return found


def deal(common: Common, positive: NDArray[np.bool_], n_queries: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Whether a side's decisions are the same on all queries, given the other side's labels.

    The decisions are dealt anew among the passages with the same label of the other side: each deal is as
    likely as the one that is there, if no query is treated otherwise. The statistic is the sum over queries
    of the squared standardised surplus.

    Returns:
        Of each query the surplus (decided less expected) and its standard deviation; and p.
    """
    random = np.random.default_rng(0)
    surplus, variance = np.zeros(n_queries), np.zeros(n_queries)
    dealt = np.zeros((_DEALS, n_queries))
    for label in np.unique(common.first):
        at = common.first == label
        sizes = np.bincount(common.query[at], minlength=n_queries)
        n, decided = int(sizes.sum()), int(positive[at].sum())
        if n < 2 or decided in (0, n):
            continue
        share = decided / n
        expected = sizes * share
        surplus += np.bincount(common.query[at], positive[at], minlength=n_queries) - expected
        variance += sizes * share * (1 - share) * (n - sizes) / (n - 1)
        drawn = random.multivariate_hypergeometric(sizes, decided, size=_DEALS, method="marginals")
        dealt += drawn - expected
    there = variance > 0
    if there.sum() < 2:
        return surplus, np.sqrt(variance), math.nan
    statistic = float((surplus[there] ** 2 / variance[there]).sum())
    of_deals = (dealt[:, there] ** 2 / variance[there]).sum(axis=1)
    p = (1 + int((of_deals >= statistic * (1 - 1e-12)).sum())) / (1 + _DEALS)
    return surplus, np.sqrt(variance), p


def _drift(inputs: AuditInputs, common: Common, best: Pair) -> tuple[list[Finding], Table]:
    a, b = inputs.sides
    n_queries = len(inputs.query_ids)
    surplus, deviation, p = deal(common, common.second >= best.second, n_queries)
    n = np.bincount(common.query, minlength=n_queries)
    share = np.divide(surplus, n, out=np.zeros(n_queries), where=n > 0)
    z = np.divide(surplus, deviation, out=np.zeros(n_queries), where=deviation > 0)
    order = np.argsort(-np.abs(z), kind="stable").tolist()
    rows = tuple(
        (inputs.query_ids[i], int(n[i]), float(surplus[i]), float(share[i]), float(z[i])) for i in order
    )
    header = ("query", "passages", "surplus", "share", "z")
    table = Table(
        header,
        rows,
        layout=Layout(("query",)),
        caption=f"Passages that {b.name} calls relevant (>= {best.second}) beyond what {a.name}'s labels let "
        "expect",
    )
    if not p < ALPHA:
        return [], table
    strict, lax = int(np.argmin(share)), int(np.argmax(share))
    names = inputs.query_ids
    finding = Finding(
        "scales",
        "drift",
        "",
        f"The threshold of {b.name} drifts over queries: from {share[strict]:+.0%} (query {names[strict]}) to "
        f"{share[lax]:+.0%} ({names[lax]}) of the passages are relevant to it beyond what {a.name} lets "
        "expect.",
        float(share.std()),
        f"Its decisions were dealt anew {_DEALS:,} times among passages with the same label of {a.name}; "
        f"p = {p:.4f}.",
        f"Look at queries {shorten_list([names[i] for i in order[:4]], 4, quote='')}; report agreement by "
        "query, and compare runs on the same queries only.",
        2,
    )
    return [finding], table


def _labels_table(sides: Sequence[Side]) -> Table:
    counts = [
        dict(zip(*np.unique(side.judged.labels[side.judged.labels != UNJUDGED], return_counts=True)))
        for side in sides
    ]
    labels = sorted({int(label) for of_side in counts for label in of_side})
    rows = tuple((str(label), *(int(of_side.get(label, 0)) for of_side in counts)) for label in labels)
    return Table(("label", *(side.name for side in sides)), rows, caption="Passages with each label")


def _pairs_table(a: Side, b: Side, pairs: Sequence[Pair]) -> Table:
    rows = []
    for pair in sorted(pairs, key=lambda pair: (pair.first, pair.second)):
        table = pair.counts.sum(axis=0)
        n = int(table.sum())
        rows.append(
            (
                *(f">={pair.first}", f">={pair.second}", n, float(np.trace(table)) / max(n, 1)),
                *(pair.kappa.value, pair.kappa.low, pair.kappa.high),
                *(int(table[1].sum()), int(table[:, 1].sum())),
            )
        )
    header = (a.name, b.name, "passages", "equal", "kappa", "kappa.low", "kappa.high")
    return Table(
        (*header, f"{a.name} relevant", f"{b.name} relevant"),
        tuple(rows),
        layout=Layout((a.name, b.name)),
        caption="Agreement at each pair of thresholds",
    )
