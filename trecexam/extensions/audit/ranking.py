"""The ranking: how far two leaderboards agree, which differences these queries can tell, and swaps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.arithmetic.choices import main_choice, main_values
from trecexam.extensions.audit.records import AuditInputs, Finding, Floats, Part
from trecexam.scores.correlation import Correlation, correlate, half_width
from trecexam.scores.paired_tests import MOST_RUNS, PairedT, holm, paired_t
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural

#: Levels of the verdicts on neighbours, two-sided: certain after Holm's adjustment, likely without.
_CERTAIN, _LIKELY = 0.05, 0.2
_POWER = 0.8
#: Even the upper end of tau below this is an alarm.
_LOW_TAU = 0.8
#: Rows of the table of swaps.
_MOST_SWAPS = 200


class Neighbours:
    """Runs that are next to each other on the first leaderboard, and what can be said of each two.

    Attributes:
        better, worse: the runs' places.
        tests: of each side the paired t test of the first against the second.
        adjusted: of each side Holm's p.
        verdicts: "certain", "likely" or "cannot be told".
    """

    def __init__(self, of_sides: list[Floats]) -> None:
        order = best_first(of_sides[0].mean(axis=1))
        self.better, self.worse = order[:-1], order[1:]
        self.tests = [paired_t(values, self.better, self.worse) for values in of_sides]
        self.adjusted = [holm(each.p) for each in self.tests]
        self.verdicts = list(self._verdicts())

    def _verdicts(self) -> Iterator[str]:
        for i in range(len(self.better)):
            same = all(each.difference[i] > 0 for each in self.tests)
            if same and all(p[i] < _CERTAIN for p in self.adjusted):
                yield "certain"
            elif same and self.tests[0].p[i] < _LIKELY:
                yield "likely"
            else:
                yield "cannot be told"


def best_first(means: Floats) -> NDArray[np.intp]:
    """The runs' places, best first; ties keep their order."""
    return np.argsort(-np.round(means, 12), kind="stable")


def smallest_difference(tests: PairedT, n_queries: int) -> float:
    """The difference of neighbours that a paired t test at .05 finds in 8 of 10 samples of so many queries.

    (t(.975) + t(.8)) * s / sqrt(n), s the median standard deviation of the neighbours' differences: Cohen,
    "Statistical Power Analysis for the Behavioral Sciences", 2nd ed. 1988, chapter 2. NaN without any.
    """
    from scipy.special import stdtrit

    known = np.abs(tests.difference[tests.effect_size != 0] / tests.effect_size[tests.effect_size != 0])
    known = known[np.isfinite(known)]
    if not len(known):
        return math.nan
    quantiles = stdtrit(n_queries - 1, 0.975) + stdtrit(n_queries - 1, _POWER)
    return float(quantiles * np.median(known) / math.sqrt(n_queries))


def ranking(inputs: AuditInputs) -> Part:
    """Neighbours and the smallest difference; of two sides correlation and swaps, too."""
    if len(inputs.runs) < 2:
        return Part()
    of_sides = [main_values(inputs, side) for side in inputs.sides]
    near = Neighbours(of_sides)
    findings = [_power(inputs, near)]
    tables = {"neighbours": _neighbours_table(inputs, near)}
    if len(of_sides) == 2:
        fewer = len(inputs.runs) <= MOST_RUNS
        correlation = correlate(of_sides[1], of_sides[0], resamples=300 if fewer else 0)
        swaps, table = _swaps(inputs, of_sides)
        findings += [_agreement(inputs, correlation), *swaps]
        tables |= {"correlation": _correlation_table(correlation), "swaps": table}
    return Part(tuple(findings), tables)


def _power(inputs: AuditInputs, near: Neighbours) -> Finding:
    smallest = smallest_difference(near.tests[0], len(inputs.query_ids))
    certain, likely = near.verdicts.count("certain"), near.verdicts.count("likely")
    name = main_choice(inputs).name
    return Finding(
        "ranking",
        "power",
        "",
        f"{plural(len(inputs.query_ids), 'query')} tell neighbours apart that differ by {smallest:.3f} {name}: "
        f"of {plural(len(near.verdicts), 'pair')} {certain} certain, {likely} likely, "
        f"{len(near.verdicts) - certain - likely} cannot be told.",
        smallest,
        "Paired t test at .05, found in 8 of 10 samples of queries; certain: Holm's p below .05 on every side.",
        "Claim an order for certain neighbours only.",
        1,
    )


def _agreement(inputs: AuditInputs, found: Correlation) -> Finding:
    a, b = (side.name for side in inputs.sides)
    low = found.tau_high < _LOW_TAU
    return Finding(
        "ranking",
        "low tau" if low else "tau",
        "",
        f"{b} orders {plural(found.n_runs, 'run')} as {a} does with tau {found.kendall_tau:.2f} "
        f"[{found.tau_low:.2f}, {found.tau_high:.2f}]; among the ten best {found.kendall_at_10:.2f}.",
        found.kendall_tau,
        "Kendall's tau-b; the interval is over queries.",
        "Do not use one leaderboard in place of the other."
        if low
        else "Report tau with its interval, and tau among the best runs beside it.",
        2 if low else 1,
    )


def _swaps(inputs: AuditInputs, of_sides: list[Floats]) -> tuple[list[Finding], Table]:
    first, second = np.triu_indices(len(inputs.runs), k=1)
    a, b = (paired_t(values, first, second) for values in of_sides)
    p_a, p_b = holm(a.p), holm(b.p)
    at = np.flatnonzero(a.difference * b.difference < 0)
    on = (p_a[at] < _CERTAIN).astype(int) + (p_b[at] < _CERTAIN)
    order = at[np.lexsort((-np.abs(a.difference[at]), -on))].tolist()
    names = ("neither side", "one side", "both sides")

    def row(i: int) -> tuple[str | float, ...]:
        up, down = (first[i], second[i]) if a.difference[i] > 0 else (second[i], first[i])
        significant = int(p_a[i] < _CERTAIN) + int(p_b[i] < _CERTAIN)
        differences = abs(float(a.difference[i])), -abs(float(b.difference[i]))
        p = float(p_a[i]), float(p_b[i])
        return inputs.runs[up], inputs.runs[down], *differences, *p, names[significant]

    sides = [side.name for side in inputs.sides]
    header = ("better", "worse", *(f"difference {name}" for name in sides), *(f"p.holm {name}" for name in sides))
    table = Table(
        (*header, "significant on"),
        tuple(row(i) for i in islice(order, _MOST_SWAPS)),
        small=header[4:],
        layout=Layout(("better", "worse")),
        caption=f"Pairs of runs that {sides[1]} orders otherwise: {len(order):,}",
    )
    both, one = int((on == 2).sum()), int((on == 1).sum())
    if not both and not one:
        return [], table
    better, worse = (row(order[0])[place] for place in (0, 1))
    if both:
        sentence = f"{plural(both, 'pair')} significantly reversed: {sides[0]} has {better} above {worse}"
    else:
        sentence = (
            f"{plural(one, 'pair')} reversed where one side is significant, as {better} above {worse} "
            f"by {sides[0]}"
        )
    finding = Finding(
        "ranking",
        "reversed" if both else "swaps",
        "",
        f"{sentence}; {len(order):,} of {plural(len(first), 'pair')} swap in all.",
        float(both or one),
        "Paired t tests over queries on each side, Holm over all pairs, .05.",
        "Do not claim these orders; look at the runs' passages."
        if both
        else "Claim these orders with the first set of judgments only.",
        3 if both else 1,
    )
    return [finding], table


def _neighbours_table(inputs: AuditInputs, near: Neighbours) -> Table:
    n_queries = len(inputs.query_ids)
    test = near.tests[0]
    rows = []
    for i, verdict in enumerate(near.verdicts):
        error = abs(test.difference[i] / test.t[i]) if test.t[i] else math.nan
        half = float(half_width(np.array(error), n_queries)) if math.isfinite(error) else math.nan
        difference = float(test.difference[i])
        rows.append(
            (
                *(inputs.runs[near.better[i]], inputs.runs[near.worse[i]], verdict),
                *(difference, difference - half, difference + half, float(near.adjusted[0][i])),
                *(float(each.difference[i]) for each in near.tests[1:]),
            )
        )
    others = tuple(f"difference {side.name}" for side in inputs.sides[1:])
    header = ("better", "worse", "verdict", "difference", "difference.low", "difference.high", "p.holm")
    return Table(
        (*header, *others),
        tuple(rows),
        small=("p.holm",),
        layout=Layout(("better", "worse")),
        caption=f"Neighbours by {main_choice(inputs).name} on {inputs.sides[0].name}",
    )


def _correlation_table(found: Correlation) -> Table:
    values = dict(zip(found.__dataclass_fields__, astuple(found), strict=True))
    names = {
        "tau": ("kendall_tau", "tau"),
        "tau_AP,b": ("tau_ap_b", "ap_b"),
        "tau, ten best": ("kendall_at_10", "at_10"),
        "tau_AP": ("tau_ap", "ap"),
        "Spearman's rho": ("spearman_rho", "rho"),
        "RBO": ("rbo", "rbo"),
    }
    rows = tuple(
        (name, values[field], values[f"{ends}_low"], values[f"{ends}_high"])
        for name, (field, ends) in names.items()
        if not math.isnan(values[field])
    )
    return Table(("coefficient", "value", "value.low", "value.high"), rows, caption="How far both agree")
