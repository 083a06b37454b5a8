"""The ranking: detectable differences, two leaderboards' agreement and swaps, and choices of the measure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from ir_measures import Measure, P, nDCG
from numpy.typing import NDArray

from trecexam.extensions.audit.findings import (
    Finding,
    Section,
    finding,
    interval_columns,
    standard_errors,
    table,
    with_interval,
)
from trecexam.extensions.audit.records import AuditInputs, Floats, Side
from trecexam.results.table import Layout, Table
from trecexam.results.text import shorten_list
from trecexam.scores.correlation import correlate
from trecexam.scores.paired_tests import holm, paired_t
from trecexam.scores.rank_correlation import tau_b_columns
from trecexam.scores.values import TIE_DECIMALS

_VERDICTS = ("certain", "likely", "cannot be told")
#: Two-sided levels of verdicts on neighbours: certain with Holm's adjustment, likely without.
_CERTAIN, _LIKELY = 0.05, 0.2
#: An upper bound of tau below this value is an alarm.
_LOW_TAU = 0.8
#: Maximum rows of the table of swaps.
_MOST_SWAPS = 200
#: Minimum share of leaderboards that must keep a certain order; below is an alarm.
_FRAGILE = 0.5
#: Cutoffs to try beside the main cutoff.
_CUTOFFS = (5, 10, 20)


def adjacent_runs(inputs: AuditInputs) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the better and the worse run of each pair of adjacent runs of the first leaderboard."""
    means = inputs.main_values(inputs.sides[0]).mean(axis=1)
    order = np.argsort(-np.round(means, TIE_DECIMALS), kind="stable")
    return order[:-1], order[1:]


def neighbours(inputs: AuditInputs) -> Table:
    """Test adjacent runs of the first leaderboard on each side.

    Certain: the same order on every side, with Holm's p below .05 on each. Likely: the same order, with a p
    below .2 on the first side.

    Returns:
        A row for each of `adjacent_runs`: the verdict "certain", "likely" or "cannot be told", the
        differences, and Holm's p on the first side.
    """
    better, worse = adjacent_runs(inputs)
    of_sides = [inputs.main_values(side) for side in inputs.sides]
    first, *others = tests = [paired_t(values, better, worse) for values in of_sides]
    adjusted = [holm(test.p) for test in tests]
    same = np.all([test.difference > 0 for test in tests], axis=0)
    certain = same & np.all([p < _CERTAIN for p in adjusted], axis=0)
    likely = same & (first.p < _LIKELY)
    verdicts = np.select([certain, likely], _VERDICTS[:2], _VERDICTS[2])
    columns = {"better": inputs.runs[better], "worse": inputs.runs[worse], "verdict": verdicts}
    columns |= interval_columns("difference", first.difference, of_sides[0][better] - of_sides[0][worse])
    columns["p.holm"] = adjusted[0]
    for side, test in zip(inputs.sides[1:], others, strict=True):
        columns[f"difference {side.name}"] = test.difference
    return table(f"Neighbours by nDCG@{inputs.cutoff} on {inputs.sides[0].name}", 2, columns)


def smallest_difference(differences: Floats) -> float:
    """Return the difference that a paired t test at .05 detects with power 0.8; NaN for a single query.

    (t(.975) + t(.8)) * e, e the median standard error of the pairs' differences, shape (pairs, queries):
    Cohen, "Statistical Power Analysis for the Behavioral Sciences", 2nd ed. 1988, chapter 2.
    """
    from scipy.special import stdtrit

    quantiles = stdtrit(differences.shape[1] - 1, (0.975, 0.8)).sum()
    return float(quantiles * np.median(standard_errors(differences)))


def ranking(inputs: AuditInputs) -> Section:
    """Test adjacent runs; with two sides also correlate the leaderboards and list their swaps."""
    if len(inputs.runs) < 2:
        return (), {}
    of_sides = [inputs.main_values(side) for side in inputs.sides]
    better, worse = adjacent_runs(inputs)
    tables = {"neighbours": neighbours(inputs)}
    findings = []
    smallest = smallest_difference(of_sides[0][better] - of_sides[0][worse])
    # 0 if no passage is relevant, NaN for one query.
    if smallest > 0:
        counts = Counter(tables["neighbours"]["verdict"])
        verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _VERDICTS)
        words = {"measure": f"nDCG@{inputs.cutoff}", "verdicts": f"of {len(better)} pairs {verdicts}"}
        findings.append(finding("power", smallest, n=inputs.n_queries, **words))
    if len(of_sides) == 2:
        agreed, tables["correlation"] = _agreement(inputs, of_sides)
        swaps, tables["swaps"] = _swaps(inputs, of_sides)
        findings += [*agreed, *swaps]
    return findings, tables


def _agreement(inputs: AuditInputs, of_sides: Sequence[Floats]) -> tuple[list[Finding], Table]:
    """Report rank correlations of the leaderboards; no finding where tau is undefined."""
    correlation = correlate(of_sides[1], of_sides[0])
    names = ("tau", "tau_AP,b", "tau of the ten best")
    coefficients = correlation.kendall_tau, correlation.tau_ap_b, correlation.kendall_at_10
    rows = [(name, *row) for name, row in zip(names, coefficients, strict=True) if not math.isnan(row.value)]
    header = ("coefficient", "value", "value.low", "value.high")
    coefficient_table = Table(
        header, tuple(rows), layout=Layout(header[:1]), caption="How far both leaderboards agree"
    )
    taus = ", ".join(f"{name} {with_interval(*row)}" for name, *row in rows)
    a, b = (side.name for side in inputs.sides)
    kind = "low tau" if correlation.kendall_tau.high < _LOW_TAU else "tau"
    if kind == "tau" and inputs.larger:
        kind, a, b = "added labels", b if inputs.larger == a else a, inputs.larger
    tau, words = correlation.kendall_tau.value, {"a": a, "b": b, "taus": taus}
    findings = [] if math.isnan(tau) else [finding(kind, tau, n=correlation.n_runs, **words)]
    return findings, coefficient_table


def _swaps(inputs: AuditInputs, of_sides: Sequence[Floats]) -> tuple[list[Finding], Table]:
    """List pairs of runs in opposite orders on both sides; those significant on both come first."""
    order = np.argsort(-of_sides[0].mean(axis=1), kind="stable")
    first, second = (order[index] for index in np.triu_indices(len(order), k=1))
    a, b = (paired_t(values, first, second) for values in of_sides)
    p_a, p_b = holm(a.p), holm(b.p)
    significant = (p_a < _CERTAIN).astype(np.int64) + (p_b < _CERTAIN)
    swapped = np.flatnonzero(a.difference * b.difference < 0)
    swapped = swapped[np.lexsort((-a.difference[swapped], -significant[swapped]))]
    some = swapped[:_MOST_SWAPS]
    name_a, name_b = (side.name for side in inputs.sides)
    columns = {
        "better": inputs.runs[first[some]],
        "worse": inputs.runs[second[some]],
        "significant on": significant[some],
        f"difference {name_a}": a.difference[some],
        f"difference {name_b}": b.difference[some],
        f"p.holm {name_a}": p_a[some],
        f"p.holm {name_b}": p_b[some],
    }
    n, n_both, n_one = (int((significant[swapped] >= sides).sum()) for sides in (0, 2, 1))
    findings = []
    if n_one:
        pair = f"{columns['better'][0]} > {columns['worse'][0]} on {name_a}"
        findings = [finding("reversed" if n_both else "swaps", n_both or n_one, pair, n=n)]
    caption = f"Pairs of runs that {name_b} orders otherwise ({n:,}), and on how many sides significant"
    return findings, table(caption, 2, columns)


def choices(side: Side, cutoff: int) -> dict[str, Measure]:
    """Return the measures that a paper may report with this set of judgments, by name.

    The names are those of ir_measures, but binary nDCG, which takes a gain for each label there, is
    nDCG(rel=2)@10.
    """
    measures: dict[str, Measure] = {}
    positive = np.unique(side.labels[side.labels > 0]).tolist()
    for k in sorted({*_CUTOFFS, cutoff}):
        measures[f"nDCG@{k}"] = nDCG @ k
        for rel in side.thresholds:
            gains = {label: int(label >= rel) for label in positive}
            measures[f"nDCG(rel={rel})@{k}"] = nDCG(gains=gains) @ k
        for rel in side.thresholds:
            measures[f"P@{k}" if rel == 1 else f"P(rel={rel})@{k}"] = P(rel=rel) @ k
    return measures


def sensitivity(inputs: AuditInputs) -> Section:
    """Compare leaderboards over the measure's choices, on each side."""
    if len(inputs.runs) < 2:
        return (), {}
    of_sides = {side: choices(side, inputs.cutoff) for side in inputs.sides}
    names = [(side.name, measure) for side, measures in of_sides.items() for measure in measures]
    judgments, measures = zip(*names, strict=True)
    means = [inputs.values(side, of_side.values()).mean(axis=2) for side, of_side in of_sides.items()]
    boards = np.round(np.concatenate(means).T, TIE_DECIMALS)
    better, worse = adjacent_runs(inputs)
    name = f"nDCG@{inputs.cutoff}"
    taus = tau_b_columns(boards, boards[:, measures.index(name), None])
    n_agreeing = (boards[better] > boards[worse]).sum(axis=1)
    n = len(measures)
    near = neighbours(inputs)
    pairs = {key: near[key] for key in ("better", "worse", "verdict")} | {"kept": n_agreeing}
    caption = f"In how many of {n} leaderboards each pair of neighbours keeps its order"
    tables = {"choices": table(caption, 2, pairs)}
    caption = f"Tau of each leaderboard with {name} on {inputs.sides[0].name}"
    columns = {"judgments": judgments, "measure": measures, "tau": taus}
    tables["leaderboards"] = table(caption, 2, columns)
    least = int(np.argmin(np.nan_to_num(taus, nan=1.0)))
    far = f"{measures[least]} on {judgments[least]} is the furthest (tau {taus[least]:.2f})"
    findings = [finding("kept", (n_agreeing == n).sum(), n=len(n_agreeing), boards=n, far=far)]
    fragile = [
        f"{first} > {second}"
        for first, second, verdict, n_keeping in zip(*pairs.values(), strict=True)
        if verdict == "certain" and n_keeping < _FRAGILE * n
    ]
    if fragile:
        words = {"measure": name, "pairs": shorten_list(fragile, 3, quote=""), "boards": n}
        findings.append(finding("fragile", len(fragile), fragile[0], **words))
    return findings, tables
