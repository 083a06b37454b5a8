"""The pool: what is not judged in the first ranks, whose runs were not pooled, and what that could change."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.arithmetic.choices import (
    Choice,
    best_values,
    labels_of,
    main_choice,
    ranks_of,
    values,
)
from trecexam.extensions.audit.arithmetic.dealing import dealt_p
from trecexam.extensions.audit.records import ALPHA, AuditInputs, Finding, Floats, Part, Side
from trecexam.scores.columns import UNJUDGED
from trecexam.scores.columns.measures.base import ratio
from trecexam.scores.paired_tests import holm
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural, shorten_list

#: Judged@k below this, in the mean of all runs, is an alarm.
_COMPLETE = 0.95
_JUDGED = (5, 10, 20)
#: Ranks that a measure may leave open and still be called safe.
_SAFE = 1


def pool(inputs: AuditInputs) -> Part:
    """Of each side: what is unjudged, runs that were not pooled, ranks that are open, safe measures."""
    parts = [_of_side(inputs, side) for side in inputs.sides]
    tables = {
        name: Table(
            ("judgments", *parts[0].tables[name].header),
            tuple(
                (side.name, *row)
                for side, part in zip(inputs.sides, parts, strict=True)
                for row in part.tables[name].rows
            ),
            layout=Layout(("judgments", *parts[0].tables[name].header[:1])),
            caption=parts[0].tables[name].caption,
        )
        for name in parts[0].tables
    }
    return Part(tuple(finding for part in parts for finding in part.findings), tables)


def rank_bounds(zero: Floats, best: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The best and worst rank of each run, from 1.

    Best: its own unjudged passages have the highest label, and those of the others none; worst: the reverse.

    Args:
        zero, best: of each run, its mean where unjudged passages are not relevant, and where its own have the
            highest label.
    """
    zero, best = np.round(zero, 12), np.round(best, 12)
    top = 1 + (zero[None, :] > best[:, None]).sum(axis=1)
    above = best[None, :] > zero[:, None]
    np.fill_diagonal(above, False)
    return top, 1 + above.sum(axis=1)


def _of_side(inputs: AuditInputs, side: Side) -> Part:
    labels = labels_of(inputs, side)
    unjudged = (inputs.rows >= 0) & (labels == UNJUDGED)
    judged = {k: _judged_share(inputs, unjudged, k) for k in sorted({*_JUDGED, inputs.cutoff})}
    choice = main_choice(inputs)
    condensed = labels_of(inputs, side, condensed=True)
    is_open = [_open(side, labels, condensed, unjudged, each) for each in _candidates(side, choice)]
    p = holm(dealt_p(inputs.rows[:, :, : choice.k], unjudged[:, :, : choice.k]))
    missed = np.flatnonzero(p < ALPHA)
    main = is_open[0]
    rows = tuple(
        (
            *(run, inputs.teams[r], *(float(share[r]) for share in judged.values()), float(p[r])),
            *(int(each[r]) for each in main),
        )
        for r, run in enumerate(inputs.runs)
    )
    shares = tuple(f"Judged@{k}" for k in judged)
    header = ("run", "team", *shares, "p.holm", "rank", "best rank", "worst rank", "condensed rank")
    caption = (
        f"Judged passages of each run, and its rank by {choice.name}: as it is, at best and at worst for its "
        "unjudged passages, and without them"
    )
    names = [each.name for each in _candidates(side, choice)]
    width = [int((each[2] - each[1])[missed].max(initial=0)) for each in is_open]
    measured = tuple(
        (name, int((each[2] - each[1]).max()), wide, "" if not len(missed) else _word(wide))
        for name, each, wide in zip(names, is_open, width, strict=True)
    )
    tables = {
        "pool": Table(header, rows, caption=caption),
        "open_ranks": Table(
            ("measure", "open ranks", "open ranks, not pooled", "for runs not pooled"),
            measured,
            caption="Ranks between the best and the worst case: the most of all runs, and of those not pooled",
        ),
    }
    share = float(judged[choice.k].mean())
    findings = list(_holes(side, choice, share))
    for r in missed.tolist():
        rank, best, worst, without = (int(each[r]) for each in main)
        findings.append(
            Finding(
                "pool",
                "not pooled",
                inputs.runs[r],
                f"{inputs.runs[r]} was not pooled for {side.name}: {1 - judged[choice.k][r]:.0%} of its first "
                f"{choice.k} passages are unjudged; its rank {rank} could be {best} to {worst}.",
                float(1 - judged[choice.k][r]),
                f"Unjudged passages are dealt among runs: so many on this one have p = {p[r]:.2g} (Holm). "
                f"Without unjudged passages it is rank {without}.",
                "Do not say that it is worse than its neighbours; judge its first ranks, or use a safe "
                "measure.",
                3,
            )
        )
    if len(missed):
        findings.append(_safe(side, names, width))
    return Part(tuple(findings), tables)


def _word(wide: int) -> str:
    return "safe" if wide <= _SAFE else "open"


def _candidates(side: Side, main: Choice) -> list[Choice]:
    """The main measure, and others that might be safer."""
    rel = next(iter(side.thresholds), 1)
    others = [Choice("nDCG", 5), Choice("P", 5, rel), Choice("P", main.k, rel), Choice("P", 1, rel)]
    return list(dict.fromkeys([main, *others]))


def _open(
    side: Side, labels: np.ndarray, condensed: np.ndarray, unjudged: np.ndarray, choice: Choice
) -> tuple[NDArray[np.intp], ...]:
    """Of each run its rank, the best, the worst, and that of condensed lists."""
    zero = values(side, labels, choice).mean(axis=1)
    best = best_values(side, labels, unjudged, choice).mean(axis=1)
    without = values(side, condensed, choice._replace(condensed=True)).mean(axis=1)
    return (ranks_of(zero), *rank_bounds(zero, best), ranks_of(without))


def _judged_share(inputs: AuditInputs, unjudged: NDArray[np.bool_], k: int) -> Floats:
    """Judged@k of each run: the mean over queries, 0 where nothing is retrieved."""
    n = (inputs.rows[:, :, :k] >= 0).sum(axis=2)
    judged = n - unjudged[:, :, :k].sum(axis=2)
    return ratio(judged.ravel(), n.ravel()).reshape(n.shape).mean(axis=1)


def _holes(side: Side, choice: Choice, share: float) -> list[Finding]:
    if share >= _COMPLETE or math.isnan(share):
        return []
    return [
        Finding(
            "pool",
            "holes",
            side.name,
            f"{1 - share:.0%} of the first {choice.k} passages are unjudged in {side.name}.",
            1 - share,
            f"Mean of 1 - Judged@{choice.k} over runs; unjudged passages count as not relevant.",
            "Judge them, or compare the leaderboard with the condensed one before you believe a difference.",
            3,
        )
    ]


def _safe(side: Side, names: Sequence[str], width: Sequence[int]) -> Finding:
    safe = [name for name, wide in zip(names, width, strict=True) if wide <= _SAFE]
    what = (
        f"{shorten_list(safe, quote='')} leave at most {plural(_SAFE, 'rank')} open"
        if safe
        else "no measure is safe"
    )
    return Finding(
        "pool",
        "safe measures",
        side.name,
        f"For the runs that {side.name} did not pool {what}; {names[0]} leaves {width[0]}.",
        float(width[0]),
        "Ranks between the best and the worst case for unjudged passages, the most of these runs.",
        f"Report {safe[0]} for these runs." if safe else "Judge their first ranks before you compare them.",
        2,
    )
