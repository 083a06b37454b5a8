"""`settle`: the probability that a claim on runs survives full judging, and judgments to decide it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError, did_you_mean
from trecexam.extensions.learn.arithmetic.passages import QueryPassages
from trecexam.extensions.learn.arithmetic.settling import SURE, Pair, Standing, standing
from trecexam.extensions.learn.encoding import Encoded, Encoder
from trecexam.extensions.learn.learned_board import K
from trecexam.extensions.learn.learned_pool import MORE, learn_pool, people_judgments
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.loaded_track import of_judgments
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table
from trecexam.tables.text import beginning, plural, shorten_list

#: Passages that are planned at most, unless said.
MOST = 100
#: Means that differ by less are the same: rounding.
SAME = 1e-9
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_FIRST = re.compile(rf"(?:the )?(?:first|best|top)[ -](\d+|{'|'.join(_NUMBERS)})(?: runs)?", re.IGNORECASE)


@dataclass(frozen=True)
class Claim:
    """A claim: `runs` are in this order, best first; or with `first`, they are above all others."""

    runs: tuple[str, ...]
    first: bool

    def __str__(self) -> str:
        return f"the first {len(self.runs)}: {', '.join(self.runs)}" if self.first else " > ".join(self.runs)


@dataclass(frozen=True)
class Settled(Result):
    """The probability of a claim, the pairs that it depends on, and judgments to decide it.

    Attributes:
        claim: what is claimed.
        probability: that it holds once all of the pool is judged, over these queries.
        pairs: of each pair that it depends on: the two runs, the expected difference of nDCG@10, its standard
            deviation, the probability that the first is better, about how many judgments decide it.
        plan: (query_id, doc_id, runs that have it in their first ten ranks, its share of what judging would
            tell, text), best first.
        planned: how many judgments are expected to decide the claim; 0 where it is settled.
        notes: what a reader must know.
    """

    claim: Claim
    probability: float
    pairs: tuple[tuple[str, str, float, float, float, int], ...]
    plan: tuple[tuple[str, str, int, float, str], ...]
    planned: int
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """ "settled", "refuted" or "open"."""
        if self.probability >= SURE:
            return "settled"
        return "refuted" if self.probability <= 1 - SURE else "open"

    def declare(self) -> dict[str, Table]:
        """`plan`: judgments, best first; `pairs`: pairs of runs in the claim; `claim`: its probability."""
        claim = (str(self.claim), self.probability, self.verdict, self.planned)
        return {
            "plan": Table(
                ("query_id", "doc_id", "runs", "tells", "text"),
                self.plan,
                layout=Layout(("query_id", "doc_id")),
            ),
            "pairs": Table(
                ("run", "other", "difference", "sd", "probability", "judgments"),
                self.pairs,
                layout=Layout(("run", "other")),
            ),
            "claim": Table(
                ("claim", "probability", "verdict", "judgments"),
                (claim,),
                layout=Layout(("claim", "verdict")),
            ),
        }

    @property
    def shown(self) -> tuple[str, ...]:
        """The claim and its pairs, and the plan if the claim is open."""
        return ("claim", "pairs", "plan") if self.plan and self.verdict == "open" else ("claim", "pairs")

    @property
    def facts(self) -> dict[str, Any]:
        """The claim's probability and verdict."""
        return {
            "claimed": str(self.claim),
            "probability": self.probability,
            "verdict": self.verdict,
            "judgments": self.planned,
        }


@of_judgments
def settle(
    track: Assessment,
    claim: str,
    *,
    most: int = MOST,
    encoder: str | Encoder | None = None,
    progress: Encoded | None = None,
) -> Settled:
    """The probability that an order of runs by mean nDCG@10 survives full judging, and what to judge.

    The probability is of the means over these queries, once every pooled passage is judged. It counts what
    people would say of unjudged passages, by learned labels; what these have wrong in all queries alike; and
    what they have wrong of passages of one query together. The plan has the passages whose judgment takes
    most off the variance of the runs' differences (minimal test collections).

    Args:
        claim: "A > B", "A > B > C", or "the first five".
        most: passages of the plan, at most.
        encoder, progress: as of `track.learn.labels`.

    Raises:
        TrecexamError: a claim that cannot be read, or of runs that are not there; fewer judgments than one a
            query; or as `track.learn.labels`.
    """
    if not track.runs:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    if most < 0:
        raise TrecexamError(f"most = {most}: at least 0")
    official, _ = people_judgments(track)
    pool = learn_pool(track, encoder=encoder, official=official, progress=progress)
    queries, names = pool.data.queries, tuple(track.runs)
    n_judged = sum(int(query.judged.sum()) for query in queries)
    if n_judged < len(queries):
        raise TrecexamError(
            f"{plural(n_judged, 'judgment')} of {plural(len(queries), 'query')}: with fewer than one per "
            f"query no probability can be trusted; {MORE}",
            path=track.folder.root,
        )
    with threadpool_limits(1):
        standings = standing(pool.learned, queries, min(K, track.depth))
    claimed = _read(claim, names, standings)
    run_indices = [names.index(run) for run in claimed.runs]
    pairs = _pairs(claimed, run_indices, len(names))
    probability = _probability(standings, claimed, run_indices)
    sure = SURE ** (1 / len(pairs))
    rows = []
    for pair in pairs:
        difference, deviation = _difference(standings, pair)
        p = _of_pair(standings, pair)
        rows.append((names[pair[0]], names[pair[1]], difference, deviation, p, standings.needed(pair, sure)))
    undecided = 1 - SURE < probability < SURE
    plan = _plan(track, standings, queries, pairs, most) if undecided else ()
    planned = max((row[-1] for row in rows), default=0) if undecided else 0
    # Of pairs that are decided by far a list would be long and say nothing.
    rows_listed = sorted(rows, key=lambda row: abs(row[4] - 0.5))[:20] if claimed.first else rows
    settled = Settled(claimed, probability, tuple(rows_listed), plan, planned, pool.notes)
    return settled.noted(*_notes(settled, standings, len(queries)))


def _read(claim: str, names: tuple[str, ...], standings: Standing) -> Claim:
    """Parses a claim.

    Raises:
        TrecexamError: it cannot be read, or names a run that is not there.
    """
    if first := _FIRST.fullmatch(" ".join(claim.split())):
        count = first[1].lower()
        n = _NUMBERS.index(count) + 1 if count in _NUMBERS else int(count)
        if not 0 < n < len(names):
            raise TrecexamError(f"'{claim}': the track has {plural(len(names), 'run')}")
        order = np.argsort(-standings.mean, kind="stable")[:n].tolist()
        return Claim(tuple(names[at] for at in order), True)
    runs = _named(claim, names)
    if len(runs) < 2 or not all(runs):
        raise TrecexamError(
            f'\'{beginning(claim)}\' is not a claim; write "A > B", "A > B > C" or "the first five"'
        )
    for run in runs:
        if run not in names:
            hint = did_you_mean(run, names, f"the runs are {shorten_list(names, quote='')}")
            raise TrecexamError(f"no run '{beginning(run)}'; {hint}")
        if runs.count(run) > 1:
            raise TrecexamError(f"'{run}' is named twice")
    return Claim(runs, False)


def _named(claim: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Splits a claim at ">" into as many run names as possible; names may contain ">", too."""
    parts = claim.split(">")
    # From each part on, the runs that the rest names; the end names none.
    named: list[tuple[str, ...] | None] = [None] * len(parts) + [()]
    for start in reversed(range(len(parts))):
        readings = [
            (name, *rest)
            for end, rest in enumerate(named[start + 1 :], start + 1)
            if rest is not None and (name := ">".join(parts[start:end]).strip()) in names
        ]
        named[start] = max(readings, key=len, default=None)
    return named[0] or tuple(part.strip() for part in parts)


def _pairs(claim: Claim, run_indices: list[int], n_runs: int) -> list[Pair]:
    if claim.first:
        return [(a, b) for a in run_indices for b in range(n_runs) if b not in run_indices]
    return list(pairwise(run_indices))


def _probability(standings: Standing, claim: Claim, run_indices: list[int]) -> float:
    if not claim.first and len(run_indices) == 2:
        return _of_pair(standings, (run_indices[0], run_indices[1]))
    drawn = standings.draw()
    if claim.first:
        inside = np.isin(np.arange(drawn.shape[1]), run_indices)
        return float(np.mean(drawn[:, inside].min(axis=1) > drawn[:, ~inside].max(axis=1) + SAME))
    return float(np.mean((np.diff(drawn[:, run_indices], axis=1) < -SAME).all(axis=1)))


def _of_pair(standings: Standing, pair: Pair) -> float:
    """The probability that the first run is better; 0 if both always have the same mean."""
    if max(map(abs, _difference(standings, pair))) < SAME:
        return 0.0
    return float(standings.above[pair])


def _difference(standings: Standing, pair: Pair) -> tuple[float, float]:
    a, b = pair
    variance = standings.covariance[a, a] + standings.covariance[b, b] - 2 * standings.covariance[a, b]
    return float(standings.mean[a] - standings.mean[b]), float(np.sqrt(max(variance, 0.0)))


def _plan(
    track: Assessment, standings: Standing, queries: Sequence[QueryPassages], pairs: list[Pair], most: int
) -> tuple[tuple[str, str, int, float, str], ...]:
    gains = standings.gains(pairs)
    total = float(sum(of.sum() for of in gains)) or 1.0
    ranked = sorted(
        (
            (-float(gain), query.query_id, doc_id, query, at)
            for query, of in zip(queries, gains, strict=True)
            for at, (doc_id, gain) in enumerate(zip(query.doc_ids, of.tolist(), strict=True))
            if gain > 0
        ),
        key=lambda row: row[:3],
    )
    return tuple(
        (
            query_id,
            doc_id,
            int((query.ranks[:, :K] == at).any(axis=1).sum()),
            -gain / total,
            beginning(track.texts.get(doc_id, "")),
        )
        for gain, query_id, doc_id, query, at in ranked[:most]
    )


def _notes(settled: Settled, standings: Standing, n_queries: int) -> list[str]:
    notes = [
        f"{settled.claim}: {settled.verdict}, probability {settled.probability:.2f} that it survives full "
        f"judging of {plural(n_queries, 'query')}; for other queries than these see `trecexam compare`"
    ]
    if settled.verdict == "open":
        notes.append(
            f"about {plural(settled.planned, 'judgment')} decide it, if the differences stay as they are "
            "expected to be; judge the plan from the top, then ask again"
        )
    if n_queries == 1:
        notes.append("with one query the error of learned labels is unknown: the probability is too extreme")
    if settled.claim.first and standings.covariance.any():
        notes.append(
            "the probability for a set of runs is rough and mostly too high: see the page 'How far can I "
            "trust learned labels?'"
        )
    return notes
