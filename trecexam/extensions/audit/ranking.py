"""The ranking: agreement of two leaderboards, detectable differences, and swapped pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.choices import main_choice, main_values
from trecexam.extensions.audit.findings import (
    Finding,
    Section,
    finding,
    standard_errors,
    table,
    with_interval,
)
from trecexam.extensions.audit.records import AuditInputs, Floats
from trecexam.results.table import Table
from trecexam.scores.correlation import Correlation, correlate, half_width
from trecexam.scores.paired_tests import PairedT, holm, paired_t
from trecexam.scores.values import TIE_DECIMALS

#: Two-sided levels of verdicts on neighbours: certain with Holm's adjustment, likely without.
_CERTAIN, _LIKELY = 0.05, 0.2
#: An upper bound of tau below this value is an alarm.
_LOW_TAU = 0.8
#: Maximum rows of the table of swaps.
_MOST_SWAPS = 200


class Neighbours(NamedTuple):
    """Runs that are adjacent on the first leaderboard, with a test of each pair.

    Attributes:
        better, worse: indices of the runs.
        tests: for each side, the paired t test of the better run against the worse.
        p: Holm-corrected p value of the first side.
        verdicts: "certain", "likely" or "cannot be told".
    """

    better: NDArray[np.intp]
    worse: NDArray[np.intp]
    tests: Sequence[PairedT]
    p: Floats
    verdicts: NDArray[np.str_]


def neighbours(of_sides: Sequence[Floats]) -> Neighbours:
    """Test adjacent runs of the first leaderboard on each side; values have shape (runs, queries).

    Certain: the same order on every side, with Holm's p below .05 on each. Likely: the same order, with a p
    below .2 on the first side.
    """
    order = np.argsort(-np.round(of_sides[0].mean(axis=1), TIE_DECIMALS), kind="stable")
    better, worse = order[:-1], order[1:]
    tests = [paired_t(values, better, worse) for values in of_sides]
    adjusted = [holm(each.p) for each in tests]
    same = np.all([each.difference > 0 for each in tests], axis=0)
    certain = same & np.all([p < _CERTAIN for p in adjusted], axis=0)
    likely = same & (tests[0].p < _LIKELY)
    verdicts = np.where(certain, "certain", np.where(likely, "likely", "cannot be told"))
    return Neighbours(better, worse, tests, adjusted[0], verdicts)


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
    of_sides = [main_values(inputs, side) for side in inputs.sides]
    near, n_queries = neighbours(of_sides), len(inputs.query_ids)
    counts = Counter(near.verdicts.tolist())
    verdicts = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in ("certain", "likely", "cannot be told")
    )
    words = f"of {len(near.better)} pairs {verdicts}"
    differences = of_sides[0][near.better] - of_sides[0][near.worse]
    smallest = smallest_difference(differences)
    findings = []
    # 0 if no passage is relevant, NaN for one query.
    if smallest > 0:
        findings.append(
            finding("power", smallest, measure=main_choice(inputs).name, n=n_queries, verdicts=words)
        )
    tables = {"neighbours": _neighbours_table(inputs, near, differences)}
    if len(of_sides) == 2:
        correlation = correlate(of_sides[1], of_sides[0])
        agreed, tables["correlation"] = _agreement(inputs, correlation)
        swaps, tables["swaps"] = _swaps(inputs, of_sides)
        findings += [*agreed, *swaps]
    return findings, tables


def _agreement(inputs: AuditInputs, correlation: Correlation) -> tuple[list[Finding], Table]:
    """Report rank correlations of the leaderboards; no finding where tau is undefined."""
    rows = {
        "tau": correlation.kendall_tau,
        "tau_AP,b": correlation.tau_ap_b,
        "tau of the ten best": correlation.kendall_at_10,
    }
    rows = {name: row for name, row in rows.items() if not math.isnan(row.value)}
    columns = zip(("value", "value.low", "value.high"), zip(*rows.values(), strict=True), strict=False)
    made = table("How far both leaderboards agree", 1, {"coefficient": list(rows), **dict(columns)})
    taus = ", ".join(f"{name} {with_interval(*row)}" for name, row in rows.items())
    a, b = (side.name for side in inputs.sides)
    kind = "low tau" if correlation.kendall_tau.high < _LOW_TAU else "tau"
    if math.isnan(correlation.kendall_tau.value):
        return [], made
    if kind == "tau" and inputs.larger:
        kind, a, b = "added labels", b if inputs.larger == a else a, inputs.larger
    return [finding(kind, correlation.kendall_tau.value, a=a, b=b, n=correlation.n_runs, taus=taus)], made


def _swaps(inputs: AuditInputs, of_sides: Sequence[Floats]) -> tuple[list[Finding], Table]:
    """List pairs of runs in opposite orders on both sides; those significant on both come first."""
    first, second = np.triu_indices(len(inputs.runs), k=1)
    a, b = (paired_t(values, first, second) for values in of_sides)
    p_a, p_b = holm(a.p), holm(b.p)
    significant = (p_a < _CERTAIN).astype(np.int64) + (p_b < _CERTAIN)
    swapped = np.flatnonzero(a.difference * b.difference < 0)
    order = swapped[np.lexsort((-np.abs(a.difference[swapped]), -significant[swapped]))]
    some = order[:_MOST_SWAPS]
    ahead = a.difference[some] > 0
    name_a, name_b = (side.name for side in inputs.sides)
    runs = np.array(inputs.runs, object)
    columns = {
        "better": runs[np.where(ahead, first[some], second[some])],
        "worse": runs[np.where(ahead, second[some], first[some])],
        "significant on": significant[some],
        f"difference {name_a}": np.abs(a.difference[some]),
        f"difference {name_b}": -np.abs(b.difference[some]),
        f"p.holm {name_a}": p_a[some],
        f"p.holm {name_b}": p_b[some],
    }
    caption = (
        f"Pairs of runs that {name_b} orders otherwise ({len(order):,}), and on how many sides significant"
    )
    findings: list[Finding] = []
    for kind, sides in (("reversed", 2), ("swaps", 1)):
        at = order[significant[order] == sides]
        if len(at) and not findings:
            pair = f"{columns['better'][0]} > {columns['worse'][0]} on {name_a}"
            findings = [finding(kind, len(at), pair, n=len(order))]
    return findings, table(caption, 2, columns)


def _neighbours_table(inputs: AuditInputs, near: Neighbours, differences: Floats) -> Table:
    test, runs = near.tests[0], np.array(inputs.runs, object)
    half = half_width(standard_errors(differences), len(inputs.query_ids))
    columns = {"better": runs[near.better], "worse": runs[near.worse], "verdict": near.verdicts}
    columns |= {"difference": test.difference, "difference.low": test.difference - half}
    columns |= {"difference.high": test.difference + half, "p.holm": near.p}
    other_sides = zip(inputs.sides[1:], near.tests[1:], strict=True)
    columns |= {f"difference {side.name}": each.difference for side, each in other_sides}
    return table(f"Neighbours by {main_choice(inputs).name} on {inputs.sides[0].name}", 2, columns)
