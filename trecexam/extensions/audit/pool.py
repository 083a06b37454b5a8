"""The pool: unjudged passages in the first ranks, runs that were not pooled, and effects on ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.choices import (
    dcg_of,
    ideal_dcg,
    main_choice,
    main_values,
    ranks_of,
)
from trecexam.extensions.audit.findings import Finding, Section, finding, table
from trecexam.extensions.audit.records import ALPHA, AuditInputs, Bools, Floats, Rows, Side
from trecexam.results.table import Table
from trecexam.scores.columns import UNJUDGED
from trecexam.scores.columns.measures.base import ratio
from trecexam.scores.paired_tests import holm
from trecexam.scores.values import TIE_DECIMALS

#: Judged@k below this, in the mean of all runs, is an alarm.
_COMPLETE = 0.95

Ranks = NDArray[np.intp]


class Open(NamedTuple):
    """Ranks of runs: unchanged, best case and worst case.

    For all labels of unjudged passages, the rank is between best and worst; the bounds need not be attained.
    """

    rank: Ranks
    best: Ranks
    worst: Ranks


def pool(inputs: AuditInputs) -> Section:
    """Find unjudged passages, runs that were not pooled, and open ranks, for each side."""
    findings: list[Finding] = []
    tables: dict[str, Table] = {}
    for side in inputs.sides:
        of_side = f" ({side.name})" * (len(inputs.sides) > 1)
        side_findings, tables[f"pool{of_side}"] = _of_side(inputs, side, of_side)
        findings += side_findings
    return findings, tables


def open_ranks(inputs: AuditInputs, side: Side) -> Open:
    """Return the ranks by nDCG@k, for all labels of the passages at the first k ranks of some run.

    Passages that are deeper in every run stay without a label. In the best rank, only runs with a certain
    lead are above; in the worst rank, all runs with a possible lead.
    """
    leads = np.round(_greatest_leads(inputs, side), TIE_DECIMALS)
    np.fill_diagonal(leads, 0)
    rank = ranks_of(main_values(inputs, side).mean(axis=1))
    # Without open labels, leads differ from values only by rounding.
    best = np.minimum(1 + (leads < 0).sum(axis=1), rank)
    worst = np.maximum(1 + (leads > 0).sum(axis=0), rank)
    return Open(rank, best, worst)


def _greatest_leads(inputs: AuditInputs, side: Side) -> Floats:
    """Return the upper bound of the difference of each two runs' means over queries; shape (runs, runs).

    Both runs' DCGs are divided by the same ideal I, over the same labels. With x of run a, y of run b, and
    I >= max(low, x): where x > y, (x - y) / I <= (x - y) / max(low, x), which rises with x and falls with
    y; else (x - y) / I <= (x - y) / high. So a's passages have the highest label and b's none, even where
    both have the same one: the bound need not be attained. The highest label is that of this side, at least
    1.
    """
    main = main_choice(inputs)
    rows = inputs.rows[:, :, : main.k]
    labels, unjudged = side.labels[rows], _unjudged(side, rows)
    highest = max(1, int(side.judged.labels.max(initial=1)))
    open_rows = np.where(unjudged, rows, -1)
    n_open = np.array([len(np.unique(rows[rows >= 0])) for rows in open_rows.swapaxes(0, 1)], np.intp)
    least = dcg_of(np.maximum(labels, 0))
    greatest = dcg_of(np.where(unjudged, np.int32(highest), np.maximum(labels, 0)))
    low, high = ideal_dcg(side, main), ideal_dcg(side, main, n_open, highest)
    leads = np.empty((len(least), len(least)))
    for run, most in enumerate(greatest):
        by_query = most - least
        divisor = np.where(by_query > 0, np.maximum(low, most), high)
        leads[run] = ratio(by_query.ravel(), divisor.ravel()).reshape(by_query.shape).mean(axis=1)
    return leads


def dealt_p(rows: Rows, unjudged: Bools, teams: NDArray[np.intp]) -> Floats:
    """Return the p value of each run's number of unjudged passages, under random assignment.

    The urn of a query are the passages at the first ranks of the run and of other teams' runs, and the run
    draws as many as it has: the number of unjudged ones is hypergeometric, and the sum over queries has the
    convolution's distribution.

    Args:
        rows: the passages, -1 for none; shape (runs, queries, k).
        unjudged: which of them have no label.
        teams: index of each run's team.
    """
    from scipy.stats import hypergeom

    laws = [np.ones(1) for _ in rows]
    mates = teams[:, None] == np.arange(teams.max() + 1)
    for query in np.flatnonzero(unjudged.any(axis=(0, 2))).tolist():
        of_query, open_ones = rows[:, query], unjudged[:, query]
        ids, id_index = np.unique(of_query, return_inverse=True)
        retrieved = np.zeros((len(rows), len(ids)), bool)
        np.put_along_axis(retrieved, id_index.reshape(of_query.shape), True, axis=1)
        retrieved[:, ids < 0] = False
        of_teams = (mates.T.astype(np.float32) @ retrieved) > 0
        urn = retrieved | (of_teams.sum(axis=0) > of_teams[teams])
        size, holes = urn.sum(axis=1), urn[:, np.isin(ids, of_query[open_ones])].sum(axis=1)
        counts = np.arange(rows.shape[2] + 1)
        law = hypergeom.pmf(counts, size[:, None], holes[:, None], retrieved.sum(axis=1)[:, None])
        laws = [np.convolve(so_far, new) for so_far, new in zip(laws, law, strict=True)]
    total = unjudged.sum(axis=(1, 2)).tolist()
    return np.array([min(1.0, float(law[n:].sum())) for law, n in zip(laws, total, strict=True)])


def _of_side(inputs: AuditInputs, side: Side, of_side: str) -> tuple[list[Finding], Table]:
    main, unjudged = main_choice(inputs), _unjudged(side, inputs.rows)
    teams = np.unique(np.array(inputs.teams, object), return_inverse=True)[1]
    p = holm(dealt_p(inputs.rows[:, :, : main.k], unjudged[:, :, : main.k], teams))
    shares = {k: _judged_share(inputs, unjudged, k) for k in sorted({5, 10, 20, main.k})}
    ranks = open_ranks(inputs, side)
    columns: dict[str, Any] = {"run": inputs.runs, "team": inputs.teams}
    columns |= {f"Judged@{k}": share for k, share in shares.items()} | {"p.holm": p, "rank": ranks.rank}
    columns |= {f"{name} rank": getattr(ranks, name) for name in ("best", "worst")}
    caption = f"Judged passages, and bounds of ranks by {main.name} for all labels of unjudged ones{of_side}"
    share = 1 - float(shares[main.k].mean())
    findings = [finding("holes", share, side.name, k=main.k)] if 1 - share < _COMPLETE else []
    for r in np.flatnonzero(p < ALPHA).tolist():
        words = {"side": side.name, "k": main.k, "p": p[r]} | {f: getattr(ranks, f)[r] for f in Open._fields}
        findings.append(finding("not pooled", 1 - shares[main.k][r], inputs.runs[r], **words))
    return findings, table(caption, 1, columns)


def _unjudged(side: Side, rows: Rows) -> Bools:
    """Return which rows have no label; -1 is no passage."""
    return np.asarray((rows >= 0) & (side.labels[rows] == UNJUDGED))


def _judged_share(inputs: AuditInputs, unjudged: Bools, k: int) -> Floats:
    """Return Judged@k of each run: the mean over queries, 0 where nothing is retrieved."""
    n = (inputs.rows[:, :, :k] >= 0).sum(axis=2)
    judged = n - unjudged[:, :, :k].sum(axis=2)
    return np.asarray(ratio(judged.ravel(), n.ravel()).reshape(n.shape).mean(axis=1))
