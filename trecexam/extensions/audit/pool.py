"""The pool: unjudged passages in the first ranks, runs that were not pooled, and effects on ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ir_measures
import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.findings import Finding, Section, finding, table
from trecexam.extensions.audit.records import ALPHA, AuditInputs, Bools, Floats, Rows, Side, ranks_of
from trecexam.results.table import Table
from trecexam.scores.columns import UNJUDGED
from trecexam.scores.columns.measures.base import ratio
from trecexam.scores.columns.measures.ndcg import dcg, ideal_dcg
from trecexam.scores.paired_tests import holm
from trecexam.scores.values import TIE_DECIMALS

#: Judged@k below this, in the mean of all runs, is an alarm.
_COMPLETE = 0.95


def pool(inputs: AuditInputs) -> Section:
    """Find unjudged passages, runs that were not pooled, and open ranks, for each side."""
    findings: list[Finding] = []
    tables: dict[str, Table] = {}
    k, rows = inputs.cutoff, inputs.rows[:, :, : inputs.cutoff]
    measures = [ir_measures.Judged @ depth for depth in sorted({5, 10, 20, k})]
    for side in inputs.sides:
        unjudged = (rows >= 0) & (side.judged.padded_labels[rows] == UNJUDGED)
        p = holm(dealt_p(rows, unjudged, inputs.team_of_run))
        shares = dict(zip(map(str, measures), inputs.values(side, measures).mean(axis=2), strict=True))
        share, ranks = shares[f"Judged@{k}"], open_ranks(inputs, side)
        if share.mean() < _COMPLETE:
            findings.append(finding("holes", 1 - share.mean(), side.name, k=k))
        for r in np.flatnonzero(p < ALPHA).tolist():
            rank, best, worst = (of_runs[r] for of_runs in ranks.values())
            words = {"side": side.name, "k": k, "p": p[r], "rank": rank, "best": best, "worst": worst}
            findings.append(finding("not pooled", 1 - share[r], inputs.runs[r], **words))
        columns: dict[str, Any] = {"run": inputs.runs, "team": inputs.teams, **shares, "p.holm": p, **ranks}
        of_side = f" ({side.name})" * (len(inputs.sides) > 1)
        bounds = f"bounds of ranks by nDCG@{k} for all labels of unjudged ones"
        tables[f"pool{of_side}"] = table(f"Judged passages, and {bounds}{of_side}", 1, columns)
    return findings, tables


def open_ranks(inputs: AuditInputs, side: Side) -> dict[str, NDArray[np.intp]]:
    """Return the ranks by nDCG@k, for all labels of the passages at the first k ranks of some run.

    Passages that are deeper in every run stay without a label. In the best rank, only runs with a certain
    lead are above; in the worst rank, all runs with a possible lead. The bounds need not be attained.

    Returns:
        Columns of a table: each run's rank without further labels, its best and its worst rank.
    """
    leads = np.round(_greatest_leads(inputs, side), TIE_DECIMALS)
    np.fill_diagonal(leads, 0)
    rank = ranks_of(inputs.main_values(side).mean(axis=1))
    # Without open labels, leads differ from values only by rounding.
    best = np.minimum(1 + (leads < 0).sum(axis=1), rank)
    worst = np.maximum(1 + (leads > 0).sum(axis=0), rank)
    return {"rank": rank, "best rank": best, "worst rank": worst}


def _greatest_leads(inputs: AuditInputs, side: Side) -> Floats:
    """Return the upper bound of the difference of each two runs' means over queries; shape (runs, runs).

    Both runs' DCGs are divided by the same ideal I, over the same labels. With x of run a, y of run b, and
    I >= max(low, x): where x > y, (x - y) / I <= (x - y) / max(low, x), which rises with x and falls with
    y; else (x - y) / I <= (x - y) / high. So a's passages have the highest label and b's none, even where
    both have the same one: the bound need not be attained. The highest label is that of this side, at least
    1.
    """
    judged, rows = side.judged, inputs.rows[:, :, : inputs.cutoff]
    is_open = np.isin(np.arange(len(judged.labels)), rows) & (judged.labels == UNJUDGED)
    highest = judged.labels.max(initial=1)
    all_highest = replace(judged, labels=np.where(is_open, highest, judged.labels))
    least, greatest = (_dcg(labelled.padded_labels[rows]) for labelled in (judged, all_highest))
    low, high = (ideal_dcg(labelled, inputs.cutoff) for labelled in (judged, all_highest))
    leads = np.empty((len(least), len(least)))
    for run, most in enumerate(greatest):
        by_query = most - least
        divisor = np.where(by_query > 0, np.maximum(low, most), high)
        leads[run] = ratio(by_query.ravel(), divisor.ravel()).reshape(by_query.shape).mean(axis=1)
    return leads


def _dcg(labels: Rows) -> Floats:
    """Return the DCG of labels in the order of ranks, which are the last axis."""
    flat = labels.reshape(-1, labels.shape[-1])
    ranks = np.broadcast_to(np.arange(flat.shape[1], dtype=np.int32), flat.shape)
    return dcg(flat, ranks).reshape(labels.shape[:-1])


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
