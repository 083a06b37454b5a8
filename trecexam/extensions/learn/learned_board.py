"""The leaderboard by expected nDCG and AP, with learned labels for unjudged passages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from trecexam.extensions.learn.arithmetic.check import design
from trecexam.extensions.learn.arithmetic.passages import FEATURES, Floats, QueryPassages
from trecexam.extensions.learn.arithmetic.scores import DRAWS, ExpectedScores, expected_scores
from trecexam.extensions.learn.learned_pool import LearnedPool, fitted
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Result
from trecexam.results.table import Layout, Table, rounded
from trecexam.results.text import plural, shorten_list
from trecexam.scores.correlation import half_width
from trecexam.scores.encoder_likeness import agreements_of_runs, runs_like_encoder
from trecexam.scores.leaderboard import Leaderboard, Row, Score, Scores

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


@dataclass(frozen=True)
class LearnedBoard(Leaderboard):
    """The expected leaderboard, by nDCG, best run first: out/learned-leaderboard.tsv.

    Its scores have means alone; intervals and judged shares are columns.

    Attributes:
        values: `run`, each measure's expected mean and 95% interval, and the judged share.
    """

    values: Table = field(default_factory=lambda: Table((), ()))

    @classmethod
    def of(cls, values: Table, n_queries: int, notes: Sequence[str]) -> LearnedBoard:
        """Make a leaderboard of the table in out/learned-leaderboard.tsv."""
        measures = [name for name in values.header[1:-1] if not name.endswith((".low", ".high"))]
        rows = []
        for row in values.rows:
            means = dict(zip(values.header, row, strict=True))
            scores = Scores((Score(float(means[name] or 0), math.nan) for name in measures), measures)
            rows.append(Row(str(row[0]), n_queries, n_queries, scores))
        return cls(tuple(measures), n_queries, "all", tuple(rows), tuple(notes), values=values)

    def _declare(self) -> dict[str, Table]:
        """The leaderboard, with ranks by expected nDCG."""
        return {"leaderboard": replace(self.values, layout=Layout(("run",), ranks=self.ranks))}

    @property
    def facts(self) -> dict[str, Any]:
        """The measures, and the number of queries."""
        return {"measures": list(self.measures), "n_queries": self.n_queries}

    def columns(self) -> dict[str, Any]:
        """The columns of `values`."""
        return dict(self.table.columns())

    def _json_value(self) -> dict[str, Any]:
        """Facts, notes, and the rows of `values`."""
        return Result._json_value(self)


def board_of(track: GradedTrack, pool: LearnedPool, doubt: str) -> LearnedBoard:
    """Return the learned leaderboard of a track with runs.

    Judged passages count as judged. Labels of the others are drawn again and again from what is learned;
    scores are means over draws. Ranks beyond the pool's depth are not looked at: AP is AP@depth. A query
    without judgments counts by what the others say of it; one without a pooled passage is left out.

    Args:
        doubt: the cross-validation's note on a method that orders the runs better; "" for none.
    """
    queries, other_queries = pool.data.queries, pool.data.others
    min_relevant, k = track.config.scores.min_relevant, min(K, track.depth)
    kind, _ = design(queries)
    n_judged = sum(int(query.judged.sum()) for query in queries)
    n_pooled = sum(len(query.doc_ids) for query in queries)
    intervals = kind == "all" or (kind == "random" and n_judged >= MIN_SHARE * n_pooled)
    with threadpool_limits(1):
        scores = expected_scores(
            pool.learned, queries, k, min_relevant, other_queries=other_queries, fits=intervals
        )
    low, high = _ends(scores, len(queries) if intervals else 0)
    columns = [side[at] for at in range(2) for side in (scores.means, low, high)]
    figures = np.column_stack([*columns, _judged(queries, k)]).tolist()
    names = tuple(track.runs)
    measures = (f"nDCG@{k}", f"AP(rel={min_relevant})@{track.depth}")
    header = ("run", *(f"{measure}{end}" for measure in measures for end in ("", ".low", ".high")))
    order = _order(scores.means[0], names)
    values = Table((*header, f"Judged@{k}"), tuple((names[at], *figures[at]) for at in order))
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
    board = LearnedBoard.of(rounded(values, CERTAIN_DIGITS), len(queries), pool.notes)
    return board.with_notes(*filter(None, [doubt]), summary, *_of_the_encoder(track, pool, board, k))


def _ends(scores: ExpectedScores, n: int) -> tuple[Floats, Floats]:
    """Return the bounds of the means' 95% intervals, shape (2, runs) each; NaN with too few queries.

    mean -+ t * root of `ExpectedScores.variances`, with Student's t of n - 1 degrees of freedom for n
    queries. They may lie beyond 0..1.
    """
    if n < MIN_QUERIES:
        return (np.full(scores.means.shape, math.nan),) * 2
    half = half_width(np.sqrt(scores.variances()), n)
    return scores.means - half, scores.means + half


def _of_the_encoder(track: GradedTrack, pool: LearnedPool, board: LearnedBoard, k: int) -> list[str]:
    """A note on runs that rank passages like the encoder, with ranks with and without its cosine."""
    queries = pool.data.queries
    cosine = FEATURES.index("cosine")
    agreements = agreements_of_runs(
        np.append(query.features[:, cosine], math.nan)[query.ranks] for query in queries
    )
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
    ranks_here = {row.run: rank for row, rank in zip(board.rows, board.ranks, strict=True)}
    moved = [f"{run} {rank} ({ranks_without[run]})" for run, rank in ranks_here.items() if run in alike]
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
