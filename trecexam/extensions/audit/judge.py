"""Bias of an automatic judge against people: raised runs and teams, and circularity with the judge's run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.findings import Finding, Section, finding, interval_columns, table
from trecexam.extensions.audit.records import ALPHA, AuditInputs, Floats, Rows, ranks_of
from trecexam.scores.columns.measures.base import discounts
from trecexam.scores.paired_tests import holm, paired_t


def judge(inputs: AuditInputs) -> Section:
    """Find the bias of the second side against the first; nothing with a single side."""
    if len(inputs.sides) < 2 or len(inputs.runs) < 3:
        return (), {}
    a, b = (side.name for side in inputs.sides)
    teams = np.unique(inputs.teams)
    of_runs = discounted(surplus(inputs)[inputs.rows[:, :, : inputs.cutoff]])
    of_teams = np.stack([of_runs[inputs.team_of_run == team].mean(axis=0) for team in range(len(teams))])
    of_others = (of_teams.sum(axis=0) - of_teams) / max(1, len(teams) - 1)
    ranks = [ranks_of(inputs.main_values(side).mean(axis=1)) for side in inputs.sides]
    raised = raised_by(of_runs, of_others[inputs.team_of_run])
    findings = []
    for r in np.flatnonzero(raised["p.holm"] < ALPHA):
        words = {"a": a, "b": b, "p": raised["p.holm"][r], "before": ranks[0][r], "after": ranks[1][r]}
        findings.append(finding("raised", raised["raise"][r], inputs.runs[r], **words))
    order = np.argsort(-np.nan_to_num(raised["raise"]), kind="stable")
    columns: dict[str, NDArray[Any]] = {"run": inputs.runs, "team": inputs.teams, **raised}
    columns |= {f"rank {a}": ranks[0], f"rank {b}": ranks[1]}
    if inputs.judge_run is not None:
        name, judge_rows = inputs.judge_run
        like = likeness(inputs.rows[:, :, : inputs.cutoff], judge_rows[:, : inputs.cutoff])
        columns["likeness"] = like.mean(axis=1)
        is_other_run = ~(inputs.rows == judge_rows).all(axis=(1, 2))
        findings += _explained(of_runs[is_other_run], like[is_other_run], name, b)
    caption = f"Labels a rank that {b} gives each run beyond other teams' runs, by {inputs.cutoff} ranks"
    tables = {"bias": table(caption, 2, {name: column[order] for name, column in columns.items()})}
    if 2 < len(teams) < len(inputs.runs):
        raised = raised_by(of_teams, of_others)
        findings += [
            finding("raised team", raised["raise"][t], teams[t], a=a, b=b, p=raised["p.holm"][t])
            for t in np.flatnonzero(raised["p.holm"] < ALPHA)
        ]
        columns = {"team": teams, "runs": np.bincount(inputs.team_of_run), **raised}
        tables["teams"] = table("What each team is given beyond the others", 1, columns)
    return findings, tables


def surplus(inputs: AuditInputs) -> Floats:
    """Return each row's second label minus the mean of the query's passages with the same first label.

    So a lenient judge raises no run, nor does a judge whose errors depend on the label. 0 where a side has no
    label.
    """
    first, second = (side.judged.labels[inputs.common] for side in inputs.sides)
    kinds, label = np.unique(first, return_inverse=True)
    group = inputs.sides[0].judged.query_of_row[inputs.common] * max(1, len(kinds)) + label
    mean = np.bincount(group, second) / np.maximum(np.bincount(group), 1)
    # The last is for row -1.
    by_row = np.zeros(len(inputs.sides[0].judged.labels) + 1)
    by_row[inputs.common] = second - mean[group]
    return by_row


def discounted(at_ranks: NDArray[Any]) -> Floats:
    """Return the discounted mean over ranks, which are the last axis."""
    weights = 1 / discounts(at_ranks.shape[-1])[: at_ranks.shape[-1]]
    return np.asarray(at_ranks @ (weights / weights.sum()))


def likeness(rows: Rows, judge_rows: Rows) -> Floats:
    """Return the discounted share of first ranks shared with the judge's run; shape (runs, queries)."""
    shared = (rows[..., None] == judge_rows[:, None, :]).any(axis=-1) & (rows >= 0)
    return discounted(shared)


def raised_by(values: Floats, reference: Floats) -> dict[str, Floats]:
    """Test how far each row lies above its reference, by a paired t test over queries.

    Args:
        values, reference: labels a rank, discounted; shape (n, queries).

    Returns:
        Columns of a table: the mean over queries, its 95% interval, and Holm's p, one-sided.
    """
    n = len(values)
    test = paired_t(np.concatenate([values, reference]), np.arange(n), np.arange(n) + n)
    p = np.where(test.difference > 0, test.p / 2, 1 - test.p / 2)
    return interval_columns("raise", test.difference, values - reference) | {"p.holm": holm(p)}


def _explained(rise: Floats, like: Floats, judge_run: str, side: str) -> Iterator[Finding]:
    """Test whether runs are raised more if they are more like the judge's own ranking."""
    if len(like) < 3:
        return
    # Covariance over runs for each query; its mean is 0 if likeness does not matter.
    products = ((like - like.mean(axis=0)) * (rise - rise.mean(axis=0))).mean(axis=0)
    p = raised_by(products[None], np.zeros((1, len(products))))["p.holm"][0]
    x, y = like.mean(axis=1), rise.mean(axis=1)
    if p < ALPHA and np.ptp(x) > 0 and np.ptp(y) > 0:
        share, slope = float(np.corrcoef(x, y)[0, 1]) ** 2, float(np.polyfit(x, y, 1)[0])
        yield finding("likeness", share, judge_run, slope=slope, p=p, b=side)
