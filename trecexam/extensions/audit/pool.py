"""The pool: unjudged passages in the first ranks, runs that were not pooled, and effects on ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.choices import (
    Bounds,
    Choice,
    bounds,
    labels_of,
    main_choice,
    ranks_of,
    values,
)
from trecexam.extensions.audit.findings import Part, finding, table
from trecexam.extensions.audit.records import ALPHA, AuditInputs, Bools, Floats, Rows, Side
from trecexam.scores.columns import UNJUDGED
from trecexam.scores.columns.measures.base import ratio
from trecexam.scores.paired_tests import holm
from trecexam.scores.values import TIE_DECIMALS

#: Judged@k below this, in the mean of all runs, is an alarm.
_COMPLETE = 0.95
#: Ranks that a measure may leave open and still be called safe.
_SAFE = 1

Ranks = NDArray[np.intp]


class Open(NamedTuple):
    """Each run's rank by a measure: unchanged, best case, worst case, and without unjudged passages.

    Whatever labels unjudged passages get, the rank is between best and worst; not each of these has a label
    for every passage that gives it.
    """

    rank: Ranks
    best: Ranks
    worst: Ranks
    condensed: Ranks


def pool(inputs: AuditInputs) -> Part:
    """For each side: unjudged passages, runs that were not pooled, open ranks, and safe measures."""
    parts = [_of_side(inputs, side, f" ({side.name})" * (len(inputs.sides) > 1)) for side in inputs.sides]
    tables = {name: made for part in parts for name, made in part.tables.items()}
    return Part(tuple(found for part in parts for found in part.findings), tables)


def greatest_leads(of: Bounds) -> Floats:
    """Upper bound of the difference of each two runs' means over queries; shape (runs, runs).

    Both runs' DCGs are divided by the same ideal I, over the same labels. With x of run a, y of run b, and
    I >= max(low, x): where x > y, (x - y) / I <= (x - y) / max(low, x), which rises with x and falls with
    y; else (x - y) / I <= (x - y) / high. So a's passages have the highest label and b's none, even where
    both have the same one: no labels can do more, and often none does as much.
    """
    leads = np.empty((len(of.least), len(of.least)))
    for run, most in enumerate(of.most):
        by_query = most - of.least
        divisor = np.where(by_query > 0, np.maximum(of.low, most), of.high)
        leads[run] = ratio(by_query.ravel(), divisor.ravel()).reshape(by_query.shape).mean(axis=1)
    return leads


def rank_bounds(leads: Floats, rank: Ranks) -> tuple[Ranks, Ranks]:
    """The best and worst rank of each run, from 1.

    Best: only runs that it can never reach are above it. Worst: all are that can exceed it.

    Args:
        leads: of `greatest_leads`.
        rank: as it is, with unjudged passages as 0.
    """
    leads = np.round(leads, TIE_DECIMALS)
    np.fill_diagonal(leads, 0)
    best, worst = 1 + (leads < 0).sum(axis=1), 1 + (leads > 0).sum(axis=0)
    # These differ by rounding alone.
    return np.minimum(best, rank), np.maximum(worst, rank)


def dealt_p(rows: Rows, unjudged: Bools, teams: NDArray[np.intp]) -> Floats:
    """p value of each run's number of unjudged passages, if these were distributed at random over passages.

    The urn of a query are the passages at the first ranks of the run and of other teams' runs, and the run
    draws as many as it has: the number of unjudged ones is hypergeometric, and the sum over queries has the
    convolution's distribution.

    Args:
        rows: the passages, -1 for none; shape (runs, queries, k).
        unjudged: which of them have no label.
        teams: of each run the number of its team.
    """
    from scipy.stats import hypergeom

    laws = [np.ones(1) for _ in rows]
    mates = teams[:, None] == np.arange(teams.max() + 1)
    for query in np.flatnonzero(unjudged.any(axis=(0, 2))).tolist():
        of_query, open_ones = rows[:, query], unjudged[:, query]
        ids, place = np.unique(of_query, return_inverse=True)
        own = np.zeros((len(rows), len(ids)), bool)
        np.put_along_axis(own, place.reshape(of_query.shape), True, axis=1)
        own[:, ids < 0] = False
        of_teams = (mates.T.astype(np.float32) @ own) > 0
        urn = own | (of_teams.sum(axis=0) > of_teams[teams])
        size, holes = urn.sum(axis=1), urn[:, np.isin(ids, of_query[open_ones])].sum(axis=1)
        counts = np.arange(rows.shape[2] + 1)
        law = hypergeom.pmf(counts, size[:, None], holes[:, None], own.sum(axis=1)[:, None])
        laws = [np.convolve(known, new) for known, new in zip(laws, law, strict=True)]
    total = unjudged.sum(axis=(1, 2)).tolist()
    return np.array([min(1.0, float(law[n:].sum())) for law, n in zip(laws, total, strict=True)])


def _of_side(inputs: AuditInputs, side: Side, of_side: str) -> Part:
    unjudged = (inputs.rows >= 0) & (labels_of(inputs, side) == UNJUDGED)
    main = main_choice(inputs)
    teams = np.unique(np.array(inputs.teams, object), return_inverse=True)[1]
    rel = next(iter(side.thresholds), 1)
    tried = [main, Choice("nDCG", 5), *(Choice("P", k, rel) for k in (1, 5, main.k))]
    by_measure = {each.name: open_ranks(inputs, side, each, max(of.k for of in tried)) for each in tried}
    p = holm(dealt_p(inputs.rows[:, :, : main.k], unjudged[:, :, : main.k], teams))
    missed = np.flatnonzero(p < ALPHA)
    shares = {k: _judged_share(inputs, unjudged, k) for k in sorted({5, 10, 20, main.k})}
    width = {name: int((each.worst - each.best)[missed].max(initial=0)) for name, each in by_measure.items()}
    here = by_measure[main.name]
    columns: dict[str, Any] = {"run": inputs.runs, "team": inputs.teams}
    columns |= {f"Judged@{k}": share for k, share in shares.items()} | {"p.holm": p, "rank": here.rank}
    columns |= {f"{name} rank": getattr(here, name) for name in ("best", "worst", "condensed")}
    measures = {
        "measure": list(width),
        "open ranks": [int((each.worst - each.best).max()) for each in by_measure.values()],
        "of runs not pooled": list(width.values()),
    }
    caption = f"Judged passages, and bounds of ranks by {main.name} for all labels of unjudged ones{of_side}"
    tables = {
        f"pool{of_side}": table(caption, 1, columns),
        f"open ranks{of_side}": table(f"Ranks between best and worst rank, at most{of_side}", 1, measures),
    }
    share = 1 - float(shares[main.k].mean())
    found = [finding("holes", share, side.name, k=main.k)] if 1 - share < _COMPLETE else []
    for r in missed.tolist():
        words = {"side": side.name, "k": main.k, "p": p[r]} | {f: getattr(here, f)[r] for f in Open._fields}
        found.append(finding("not pooled", 1 - shares[main.k][r], inputs.runs[r], **words))
    if len(missed):
        safe = [name for name, wide in width.items() if wide <= _SAFE]
        words = {"safe": f"{', '.join(safe)} at most {_SAFE}" if safe else "no measure is safe"}
        found.append(finding("safe measures", width[main.name], side.name, measure=main.name, **words))
    return Part(tuple(found), tables)


def open_ranks(inputs: AuditInputs, side: Side, choice: Choice, depth: int) -> Open:
    """The ranks by a measure, for all labels of the passages at the first `depth` ranks of some run.

    Passages that are deeper in every run stay without a label.
    """
    labels, condensed = labels_of(inputs, side), labels_of(inputs, side, condensed=True)
    unjudged = (inputs.rows >= 0) & (labels == UNJUDGED)
    there = np.where(unjudged, inputs.rows, -1)[:, :, :depth]
    n_unjudged = np.array([len(np.unique(rows[rows >= 0])) for rows in there.swapaxes(0, 1)], np.intp)
    rank = ranks_of(values(side, labels, choice).mean(axis=1))
    best, worst = rank_bounds(greatest_leads(bounds(side, labels, choice, unjudged, n_unjudged)), rank)
    return Open(rank, best, worst, ranks_of(values(side, condensed, choice).mean(axis=1)))


def _judged_share(inputs: AuditInputs, unjudged: Bools, k: int) -> Floats:
    """Judged@k of each run: the mean over queries, 0 where nothing is retrieved."""
    n = (inputs.rows[:, :, :k] >= 0).sum(axis=2)
    judged = n - unjudged[:, :, :k].sum(axis=2)
    return np.asarray(ratio(judged.ravel(), n.ravel()).reshape(n.shape).mean(axis=1))
