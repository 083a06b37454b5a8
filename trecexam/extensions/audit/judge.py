"""The judge against people: runs and teams that it raises, likeness to its own ranking, each team left out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trecexam.extensions.audit.arithmetic.choices import main_choice, main_values, ranks_of
from trecexam.extensions.audit.records import ALPHA, AuditInputs, Finding, Floats, Labels, Part
from trecexam.extensions.audit.scales import common_passages
from trecexam.scores.columns import UNJUDGED
from trecexam.scores.columns.measures.base import discounts
from trecexam.scores.correlation import half_width
from trecexam.scores.paired_tests import holm, paired_t
from trecexam.scores.rank_correlation.tau import tau_b_columns
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import plural, shorten_list

#: Tau that is so much higher without a team is an alarm.
_OF_ONE_TEAM = 0.05


class Raise(NamedTuple):
    """What the judge gives runs, or teams, beyond what it gives the others, in labels a rank.

    Attributes:
        mean, half: over queries, and half of its 95% interval.
        p: one-sided, for a mean above 0, Holm's.
    """

    mean: Floats
    half: Floats
    p: Floats


def judge(inputs: AuditInputs) -> Part:
    """Bias of the second side against the first; nothing where there is one side."""
    if len(inputs.sides) < 2 or len(inputs.runs) < 3:
        return Part()
    of_runs = surplus_of_runs(inputs.rows[:, :, : inputs.cutoff], surplus(inputs))
    n_teams = len(inputs.team_names)
    members = (inputs.team_codes[None, :] == np.arange(n_teams)[:, None]).astype(np.float64)
    of_teams = np.tensordot(members / members.sum(axis=1, keepdims=True), of_runs, 1)
    raised = raised_by(of_runs, _of_others(of_teams)[inputs.team_codes])
    means = [main_values(inputs, side).mean(axis=1) for side in inputs.sides]
    found = list(_raised(inputs, raised, inputs.runs, "raised", means))
    like, shares = (None, [])
    if inputs.judge_rows is not None:
        like = likeness(inputs.rows[:, :, : inputs.cutoff], inputs.judge_rows)
        shares = _explained(inputs, of_runs, like)
    tables = {"bias": _runs_table(inputs, raised, means, like)}
    if inputs.has_teams and n_teams > 2:
        teams = raised_by(of_teams, _of_others(of_teams))
        found += _raised(inputs, teams, inputs.team_names, "raised team", means)
        without = _without_teams(inputs, means)
        found += _left_out(inputs, means, without)
        tables["teams"] = _teams_table(inputs, teams, without)
    return Part((*found, *shares), tables)


def surplus(inputs: AuditInputs) -> Floats:
    """Of each row the second side's label less its mean for passages of this query with the same first label.

    So neither a lenient judge nor one whose errors depend on the label, on any query, raises a run. 0 where
    a side has no label.
    """
    a, b = inputs.sides
    common = common_passages(a, b)
    both = (a.judged.labels != UNJUDGED) & (b.judged.labels != UNJUDGED)
    found = np.zeros(len(a.labels))
    if not both.any():
        return found
    kinds, label = np.unique(common.first, return_inverse=True)
    group = common.query * len(kinds) + label
    labels = common.second.astype(np.float64)
    n = np.bincount(group)
    means = np.bincount(group, labels) / np.maximum(n, 1)
    found[: len(both)][both] = labels - means[group]
    return found


def surplus_of_runs(rows: Labels, of_rows: Floats) -> Floats:
    """The discounted mean surplus at the first ranks; shape (runs, queries).

    Args:
        rows: shape (runs, queries, k).
        of_rows: of `surplus`.
    """
    k = rows.shape[2]
    weights = 1 / discounts(k)[:k]
    means: Floats = of_rows[rows] @ (weights / weights.sum())
    return means


def raised_by(own: Floats, others: Floats) -> Raise:
    """How far each row lies above its reference, by a paired t test over queries; shapes (n, queries)."""
    n = len(own)
    test = paired_t(np.concatenate([own, others]), np.arange(n), np.arange(n) + n)
    p = np.where(test.difference > 0, test.p / 2, 1 - test.p / 2)
    error = np.divide(np.abs(test.difference), np.abs(test.t), out=np.full(n, math.nan), where=test.t != 0)
    return Raise(test.difference, half_width(error, own.shape[1]), holm(p))


def likeness(rows: Labels, judge_rows: Labels) -> Floats:
    """The discounted share of a run's first ranks that are in the judge's own; shape (runs, queries)."""
    k = rows.shape[2]
    weights = 1 / discounts(k)[:k]
    found = np.zeros(rows.shape, bool)
    for rank in range(judge_rows.shape[1]):
        found |= (rows == judge_rows[None, :, rank, None]) & (rows >= 0)
    shares: Floats = found @ (weights / weights.sum())
    return shares


def _of_others(of_teams: Floats) -> Floats:
    """Of each team the mean of all other teams."""
    n = len(of_teams)
    return (of_teams.sum(axis=0) - of_teams) / max(1, n - 1)


def _raised(
    inputs: AuditInputs, found: Raise, names: tuple[str, ...], kind: str, means: list[Floats]
) -> list[Finding]:
    a, b = (side.name for side in inputs.sides)
    ranks = [ranks_of(each) for each in means]
    findings = []
    for i in np.flatnonzero(found.p < ALPHA).tolist():
        moved = f"; rank {ranks[0][i]} becomes {ranks[1][i]}" if kind == "raised" else ""
        findings.append(
            Finding(
                "judge",
                kind,
                names[i],
                f"{b} raises {names[i]} beyond chance: {found.mean[i]:+.2f} labels a rank{moved}.",
                float(found.mean[i]),
                f"Against passages of the same query and the same label of {a}, and against other teams' "
                f"runs; paired t test over queries, Holm's p {found.p[i]:.2g}.",
                "That is what circularity looks like: ask whether run and judge share a model or a prompt, "
                "and do not rank this run by this judge.",
                3,
            )
        )
    return findings


def _explained(inputs: AuditInputs, of_runs: Floats, like: Floats) -> list[Finding]:
    """Whether runs are raised the more, the more they are like the judge's own ranking."""
    judge_rows = inputs.judge_rows
    others = [
        r
        for r in range(len(inputs.runs))
        if judge_rows is None or not np.array_equal(inputs.rows[r, :, : judge_rows.shape[1]], judge_rows)
    ]
    rise, like = of_runs[others], like[others]
    if len(others) < 3:
        return []
    centred = like - like.mean(axis=0)
    # Of each query the covariance over runs.
    products = (centred * (rise - rise.mean(axis=0))).mean(axis=0)
    p = raised_by(products[None], np.zeros_like(products)[None]).p[0]
    x, y = like.mean(axis=1), rise.mean(axis=1)
    if not p < ALPHA or np.ptp(x) == 0 or np.ptp(y) == 0:
        return []
    share = float(np.corrcoef(x, y)[0, 1]) ** 2
    slope = float(np.polyfit(x, y, 1)[0])
    b = inputs.sides[1].name
    return [
        Finding(
            "judge",
            "likeness",
            inputs.judge_run,
            f"Likeness to {inputs.judge_run} explains {share:.0%} of how much more {b} raises one run than "
            "another.",
            share,
            f"{slope:+.2f} labels a rank from nothing to all in common; paired over queries, p = {p:.2g}.",
            f"Do not compare runs like {inputs.judge_run} with others by {b}.",
            3,
        )
    ]


def _without_teams(inputs: AuditInputs, means: list[Floats]) -> Floats:
    """Tau of both leaderboards without each team."""
    kept = [inputs.team_codes != team for team in range(len(inputs.team_names))]
    taus = [tau_b_columns(*(np.round(each[keep], 12)[:, None] for each in means))[0] for keep in kept]
    return np.array(taus)


def _left_out(inputs: AuditInputs, means: list[Floats], without: Floats) -> list[Finding]:
    tau = float(tau_b_columns(*(np.round(each, 12)[:, None] for each in means))[0])
    if np.isnan(without).all() or math.isnan(tau):
        return []
    most = int(np.nanargmax(np.abs(without - tau)))
    team, value = inputs.team_names[most], float(without[most])
    alarm = value - tau > _OF_ONE_TEAM
    return [
        Finding(
            "judge",
            "one team" if alarm else "teams",
            team,
            f"Without team {team} tau is {value:.2f}, with it {tau:.2f}; no other team changes it more.",
            value - tau,
            f"Tau of both leaderboards, each of {plural(len(without), 'team')} left out.",
            f"Look at the runs of {team}: the judge disagrees there." if alarm else "No single team decides.",
            2 if alarm else 1,
        )
    ]


def _runs_table(inputs: AuditInputs, found: Raise, means: list[Floats], like: Floats | None) -> Table:
    a, b = (side.name for side in inputs.sides)
    ranks = [ranks_of(each) for each in means]
    order = np.argsort(-np.nan_to_num(found.mean), kind="stable").tolist()
    rows = tuple(
        (
            *(inputs.runs[r], inputs.teams[r], float(found.mean[r])),
            *(float(found.mean[r] - found.half[r]), float(found.mean[r] + found.half[r])),
            *(float(found.p[r]), int(ranks[0][r]), int(ranks[1][r])),
            *(() if like is None else (float(like[r].mean()),)),
        )
        for r in order
    )
    header = ("run", "team", "raise", "raise.low", "raise.high", "p.holm", f"rank {a}", f"rank {b}")
    return Table(
        (*header, *(() if like is None else (f"likeness {inputs.judge_run}",))),
        rows,
        small=("p.holm",),
        layout=Layout(("run", "team")),
        caption=f"Labels a rank that {b} gives each run beyond the other teams' runs, in the first "
        f"{main_choice(inputs).k} ranks",
    )


def _teams_table(inputs: AuditInputs, found: Raise, without: Floats) -> Table:
    rows = tuple(
        (
            *(team, inputs.teams.count(team), float(found.mean[t])),
            *(float(found.mean[t] - found.half[t]), float(found.mean[t] + found.half[t])),
            *(float(found.p[t]), float(without[t])),
        )
        for t, team in enumerate(inputs.team_names)
    )
    header = ("team", "runs", "raise", "raise.low", "raise.high", "p.holm", "tau without")
    caption = f"Teams: {shorten_list(inputs.team_names, 3, quote='')}"
    return Table(header, rows, small=("p.holm",), layout=Layout(("team",)), caption=caption)
