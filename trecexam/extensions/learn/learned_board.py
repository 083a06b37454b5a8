"""The leaderboard by expected nDCG and AP, with learned labels for unjudged passages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.errors import TrecexamError
from trecexam.extensions.learn.arithmetic.check import (
    Comparison,
    compare,
    condensed,
    design,
    expectations,
    zeros,
)
from trecexam.extensions.learn.arithmetic.passages import FEATURES, Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.scores import DRAWS, ExpectedScores, expected_scores
from trecexam.extensions.learn.encoding import Encoded, Encoder
from trecexam.extensions.learn.learned_pool import LearnedPool, fitted, learn_pool
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.loaded_track import of_judgments
from trecexam.scores.correlation import half_width
from trecexam.scores.encoder_likeness import MAX_RANKS, agreement, runs_like_encoder
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table, rounded
from trecexam.tables.text import plural, shorten_list

#: Of nDCG; less where the pool is not so deep.
K = 10
#: Digits after the point that are certain in expected means: where the regressions stop (see `learn`) moves
#: those of DL 2019 by up to 2e-4. Means that agree to these share a rank.
CERTAIN_DIGITS = 3
#: With fewer queries nothing can be said of others.
MIN_QUERIES = 2
#: Intervals are given where all is judged, or a random sample of at least this share: with less, too few of
#: them hold the truth (results/learned.md of tests/benchmarks).
MIN_SHARE = 0.75

#: The ways that the learned leaderboard has to be as good as.
LEARNED, ZERO, CONDENSED = "learned", "unjudged = 0", "condensed"
#: What to do instead.
_INSTEAD = {
    ZERO: "`trecexam leaderboard {root} --official`, which counts unjudged passages as not relevant",
    CONDENSED: "lists without unjudged passages: `nDCG(judged_only=True)@10` with ir_measures",
}


class NotTrustedError(TrecexamError):
    """The track's judgments do not support its learned leaderboard."""


@dataclass(frozen=True, eq=False)
class LearnedBoard(Result):
    """The expected leaderboard, by nDCG, best run first.

    Attributes:
        measures: nDCG@10 (or @depth) and AP(rel=min_relevant)@depth.
        query_ids: what means are over.
        runs: best first; of equal means the first by name.
        judged: of each run, the share of its passages down to nDCG's rank that are judged.
        scores: with the runs in this order.
        intervals: whether enough is judged for intervals.
        doubts: why the ranking is not to be trusted; "" where the track's judgments support it.
        notes: what a reader must know.
    """

    measures: tuple[str, str]
    query_ids: tuple[str, ...]
    runs: tuple[str, ...]
    judged: tuple[float, ...]
    scores: ExpectedScores
    intervals: bool
    doubts: str
    notes: tuple[str, ...]

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The bounds of the means' 95% intervals, shape (2, runs) each; NaN without intervals.

        mean -+ t * root of `ExpectedScores.variances`, with Student's t of n - 1 degrees of freedom for n
        queries. They may lie beyond 0..1.
        """
        n = len(self.query_ids)
        if n < MIN_QUERIES or not self.intervals:
            return (np.full(self.scores.means.shape, math.nan),) * 2
        half = half_width(np.sqrt(self.scores.variances()), n)
        return self.scores.means - half, self.scores.means + half

    @property
    def ranks(self) -> tuple[int, ...]:
        """Each run's rank by expected nDCG, from 1; runs with equal means share the better one."""
        means = np.round(self.scores.means[0], CERTAIN_DIGITS).tolist()
        return tuple(means.index(mean) + 1 for mean in means)

    def declare(self) -> dict[str, Table]:
        """`run`, each measure's expected mean and interval, and the judged share."""
        low, high = self.ends
        columns = [side[at].tolist() for at in range(2) for side in (self.scores.means, low, high)]
        names = [f"{measure}{end}" for measure in self.measures for end in ("", ".low", ".high")]
        rows = zip(self.runs, *columns, self.judged, strict=True)
        header = ("run", *names, f"Judged@{self.measures[0].split('@')[1]}")
        board = Table(header, tuple(rows), layout=Layout(("run",), ranks=self.ranks))
        return {"leaderboard": rounded(board, CERTAIN_DIGITS)}

    @property
    def facts(self) -> dict[str, Any]:
        """The measures, the number of queries, and doubts about the ranking."""
        return {
            "measures": list(self.measures),
            "n_queries": len(self.query_ids),
            "doubts": self.doubts or None,
        }


@of_judgments
def learned_leaderboard(
    track: Assessment,
    *,
    insist: bool = False,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Encoded | None = None,
) -> LearnedBoard:
    """The runs by expected nDCG@10 and AP, with learned labels for missing judgments; grades nothing.

    Judged passages count as judged. Labels of the others are drawn again and again from what is learned;
    scores are means over draws. Ranks beyond the pool's depth are not looked at: AP is AP@depth. A query
    without judgments counts by what the others say of it; one without a pooled passage is left out.

    Before it is given, half of the track's judgments are hidden, and it must order the runs no worse than
    giving 0 to unjudged passages, and than leaving them out (`arithmetic.check`).

    Args:
        insist: gives it where another way orders the runs better, too; a note says so.
        source, encoder, progress: as of `track.learn.labels`.
        draws: how many, at least two.
        seed: of the random numbers; the same one gives the same leaderboard.

    Raises:
        NotTrustedError: another way orders the runs better, or nothing says that none does.
        TrecexamError: as `track.learn.labels`, or there are no runs.
    """
    if not track.runs:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    board = board_of(
        track, learn_pool(track, source=source, encoder=encoder, progress=progress), draws=draws, seed=seed
    )
    if board.doubts and not insist:
        raise NotTrustedError(
            f"{board.doubts}; or show this leaderboard with --insist", path=track.folder.root
        )
    return board


def board_of(track: Assessment, pool: LearnedPool, *, draws: int = DRAWS, seed: int = 0) -> LearnedBoard:
    """The learned leaderboard of a track with runs, whether trusted or not."""
    queries, other_queries = pool.data.queries, pool.data.others
    min_relevant, k = track.config.scores.min_relevant, min(K, track.depth)
    names = tuple(track.runs)
    kind, _ = design(queries)
    n_judged = sum(int(query.judged.sum()) for query in queries)
    n_pooled = sum(len(query.doc_ids) for query in queries)
    intervals = kind == "all" or (kind == "random" and n_judged >= MIN_SHARE * n_pooled)
    with threadpool_limits(1):
        scores = expected_scores(
            pool.learned, queries, k, min_relevant, draws, seed, other_queries, fits=intervals
        )
        doubts, unproven = _doubts(track, queries, other_queries)
    judged = _judged(queries, k)
    order = _order(scores.means[0], names)
    board = LearnedBoard(
        (f"nDCG@{k}", f"AP(rel={min_relevant})@{track.depth}"),
        tuple(query.query_id for query in queries),
        tuple(names[at] for at in order),
        tuple(judged[at] for at in order),
        scores.of_runs(order),
        intervals,
        doubts,
        pool.notes,
    )
    how = {
        "all": "all of the pool is judged",
        "random": f"a random {n_judged / n_pooled:.0%} of the pool is judged",
        "most retrieved": f"the most retrieved {n_judged / len(queries):.1f} passages of a query are judged",
    }[kind]
    if not n_judged:
        how = "nothing in the pool is judged"
    without = "" if intervals else "; no intervals, because too few of them would contain the true value"
    summary = (
        f"expected over {plural(len(queries), 'query')}, with learned labels for unjudged passages; "
        f"{how}{without}"
    )
    return board.noted(*filter(None, (doubts, unproven)), summary, *_of_the_encoder(track, pool, board, k))


def unproven_note(compared: Comparison, method: str, name: str, learned: str = LEARNED) -> str:
    """A note on a method with a lower loss than learned labels, which are still used.

    Args:
        method, learned: as `compared` calls them.
        name: of the way, as people know it.
    """
    losses = f"{compared.ways[method].loss:.4f} against {compared.ways[learned].loss:.4f}"
    return f"`{name}` loses less here ({losses}), but not beyond chance, so learned labels are used"


def _doubts(
    track: Assessment, queries: Sequence[QueryPassages], other_queries: Sequence[QueryPassages]
) -> tuple[str, str]:
    """Why the learned leaderboard cannot be trusted, and what to do instead; "" if it can.

    And a note where another way loses less with half of the judgments hidden, though not beyond chance; "".
    """
    if all(query.judged.all() for query in queries):
        return "", ""
    ways = {LEARNED: expectations, ZERO: zeros, CONDENSED: condensed}
    try:
        compared = compare(queries, ways, track.config.scores.min_relevant, other_queries)
    except ValueError as error:
        return (
            "too few judgments to see whether learned labels order the runs well (with half of them hidden: "
            f"{error}): judge more, see `trecexam learned-next {track.folder.root}`"
        ), ""
    if compared.hidden < 1:
        return (
            "too few judgments to see whether learned labels order the runs well: judge at least two "
            f"passages of a query, see `trecexam learned-next {track.folder.root}`"
        ), ""
    best = compared.best(LEARNED, (ZERO, CONDENSED))
    if best == LEARNED:
        less = compared.unproven(LEARNED, (ZERO, CONDENSED))
        note = "" if less is None else unproven_note(compared, less, less)
        return "", note and f"with half of the judgments hidden {note}"
    return (
        f"with half of the judgments hidden `{best}` orders the runs better than learned labels (loss "
        f"{compared.ways[best].loss:.3f} against {compared.ways[LEARNED].loss:.3f}): use "
        f"{_INSTEAD[best].format(root=track.folder.root)}"
    ), ""


def _of_the_encoder(track: Assessment, pool: LearnedPool, board: LearnedBoard, k: int) -> list[str]:
    """A note on runs that rank passages like the encoder, with ranks with and without its cosine."""
    queries = pool.data.queries
    agreements = np.full((len(board.runs), len(queries)), math.nan)
    for at, query in enumerate(queries):
        ranks = query.ranks[:, :MAX_RANKS]
        if ranks.shape[1] > 1 and len(query.doc_ids) > 1:
            cosines = np.append(query.features[:, FEATURES.index("cosine")], math.nan)
            agreements[:, at] = agreement(cosines[ranks])
    names = tuple(track.runs)
    alike = [names[at] for at in runs_like_encoder(agreements)]
    if not alike:
        return []
    with threadpool_limits(1):
        blind = fitted(track, pool.data, without=("cosine",), neighbours=False)
        scores = expected_scores(
            blind,
            queries,
            k,
            track.config.scores.min_relevant,
            DRAWS // 2,
            other_queries=pool.data.others,
            fits=False,
        )
    ranks_without = {names[at]: rank for rank, at in enumerate(_order(scores.means[0], names), 1)}
    ranks_here = dict(zip(board.runs, board.ranks, strict=True))
    moved = [f"{run} {ranks_here[run]} ({ranks_without[run]})" for run in board.runs if run in alike]
    return [
        f"{plural(len(alike), 'run')} {'ranks' if len(alike) == 1 else 'rank'} passages much like the "
        f"encoder of these labels; rank here (rank without the encoder's cosine): "
        f"{shorten_list(moved, quote='')}; the true rank may be between them"
    ]


def _order(means: Floats, names: Sequence[str]) -> list[int]:
    printed = np.round(means, CERTAIN_DIGITS).tolist()
    return sorted(range(len(names)), key=lambda at: (-printed[at], names[at]))


def _judged(queries: Sequence[QueryPassages], k: int) -> list[float]:
    """Each run's share of judged passages in its first k; 0 for an empty run."""
    retrieved = judged = np.zeros(len(queries[0].ranks), np.int64)
    for query in queries:
        top = query.ranks[:, :k]
        is_judged = np.append(query.judged, False)
        retrieved = retrieved + (top >= 0).sum(axis=1)
        judged = judged + is_judged[top].sum(axis=1)
    shares: list[float] = (judged / np.maximum(retrieved, 1)).tolist()
    return shares
