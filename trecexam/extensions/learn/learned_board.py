"""The runs by what nDCG and AP are expected to be, with labels learned for what nobody judged."""

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
from trecexam.extensions.learn.arithmetic.expected_scores import DRAWS, ExpectedScores, expected_scores
from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.retrieval import retrieved_alike
from trecexam.extensions.learn.encoding import Encoded, Encoder
from trecexam.extensions.learn.learned_pool import LearnedPool, learn_pool
from trecexam.line.assessment import Assessment
from trecexam.line.diagnostics import NO_RUNS
from trecexam.line.loaded_track import of_documents
from trecexam.scores.correlation import half_width
from trecexam.scores.values import TIE_DECIMALS
from trecexam.tables.result import Result
from trecexam.tables.table import Layout, Table

#: Of nDCG; less where the pool is not so deep.
K = 10
#: With fewer queries nothing can be said of others.
MIN_QUERIES = 2
#: Judged passages a query, and their share of the pool. With less of both, unless they are retrieved as the
#: others are, too few intervals hold the truth, and none is given: learned-intervals.md of tests/benchmarks.
MIN_JUDGED, MIN_SHARE = 15, 0.2


@dataclass(frozen=True, eq=False)
class LearnedBoard(Result):
    """The expected leaderboard, by nDCG, best run first.

    Attributes:
        measures: nDCG@10 (or @depth) and AP(rel=min_relevant)@depth.
        query_ids: what means are over.
        runs: best first; of equal means the first by name.
        judged: of each run, the share of its passages down to nDCG's rank that are judged.
        scores: with the runs in this order.
        these_queries: whether intervals are for these queries alone, and hold the labels only.
        judged_a_query: pooled passages that are judged, of a query on average.
        enough: whether enough is judged for intervals, as `enough_judged`.
        notes: what the intervals are, and what else a reader must know.
    """

    measures: tuple[str, str]
    query_ids: tuple[str, ...]
    runs: tuple[str, ...]
    judged: tuple[float, ...]
    scores: ExpectedScores
    these_queries: bool
    judged_a_query: float
    enough: bool
    notes: tuple[str, ...]

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The ends of the means' 95% intervals, shape (2, runs) each; NaN with one query, or not `enough`.

        mean -+ t * root of `ExpectedScores.variances`, with Student's t of n - 1 degrees of freedom for n
        queries. They may lie beyond 0..1.
        """
        n = len(self.query_ids)
        if n < MIN_QUERIES or not self.enough:
            return (np.full(self.scores.means.shape, math.nan),) * 2
        half = half_width(np.sqrt(self.scores.variances(these_queries=self.these_queries)), n)
        return self.scores.means - half, self.scores.means + half

    @property
    def ranks(self) -> tuple[int, ...]:
        """Each run's rank by expected nDCG, from 1; runs with equal means share the better one."""
        means = np.round(self.scores.means[0], TIE_DECIMALS).tolist()
        return tuple(means.index(mean) + 1 for mean in means)

    def declare(self) -> dict[str, Table]:
        """`run`, of each measure the expected mean and its interval's ends, and the share that is judged."""
        low, high = self.ends
        columns = [side[at].tolist() for at in range(2) for side in (self.scores.means, low, high)]
        names = [f"{measure}{end}" for measure in self.measures for end in ("", ".low", ".high")]
        rows = zip(self.runs, *columns, self.judged, strict=True)
        header = ("run", *names, f"Judged@{self.measures[0].split('@')[1]}")
        return {"leaderboard": Table(header, tuple(rows), layout=Layout(("run",), ranks=self.ranks))}

    @property
    def facts(self) -> dict[str, Any]:
        """The measures, how many queries, and what the intervals are for."""
        return {
            "measures": list(self.measures),
            "n_queries": len(self.query_ids),
            "intervals": "these queries" if self.these_queries else "all queries",
        }

    def summary(self) -> str:
        """What the intervals are, in a line."""
        n = len(self.query_ids)
        expected = f"expected over {n:,} queries, with labels learned for what is not judged; "
        if not self.enough:
            return (
                f"{expected}no intervals: {self.judged_a_query:.1f} passages a query are judged; where these "
                f"are no random sample, fewer than {MIN_JUDGED} and less than {MIN_SHARE:.0%} of the pool, "
                "too few hold the truth"
            )
        held = "the labels only: these queries" if self.these_queries else "the labels and the queries"
        return f"{expected}95% intervals hold what is uncertain in {held}; {self._measured()}"

    def _measured(self) -> str:
        """How many intervals held the truth, as tests/benchmarks/results/learned-intervals.md has it."""
        if self.these_queries:
            return "they are rough: on DL 2019 92 to 97% held the truth of nDCG, 87 to 94% that of AP"
        return "on DL 2019 90 to 94% held the truth of nDCG, 94 to 97% that of AP"


@of_documents
def learned_leaderboard(
    track: Assessment,
    *,
    these_queries: bool = False,
    source: Path | str | None = None,
    encoder: str | Encoder | None = None,
    grades: bool = True,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Encoded | None = None,
) -> LearnedBoard:
    """The runs by expected nDCG@10, and AP, where learned labels stand for missing judgments; grades nothing.

    Judged passages count as judged. Labels of the others are drawn again and again from what is learned, each
    passage's together with those like it; scores are means over draws. An unjudged passage without a text
    counts as not relevant. Ranks beyond the pool's depth are not looked at: AP is AP@depth. A query without
    judgments counts by what the others say of it; one without a text or a pooled passage is left out.

    Args:
        these_queries: intervals for the means that all judgments of these queries would give; else for those
            over all queries that might have been asked.
        source, encoder, grades, progress: as of `track.learn.labels`.
        draws: how many, at least two.
        seed: of the random numbers; the same one gives the same leaderboard.

    Raises:
        TrecexamError: as `track.learn.labels`, or there are no runs.
    """
    if not track.runs:
        raise TrecexamError(NO_RUNS, path=track.folder.runs)
    pool = learn_pool(track, source=source, encoder=encoder, grades=grades, progress=progress)
    return board_of(track, pool, these_queries=these_queries, draws=draws, seed=seed)


def board_of(
    track: Assessment, pool: LearnedPool, *, these_queries: bool = False, draws: int = DRAWS, seed: int = 0
) -> LearnedBoard:
    """As `learned_leaderboard`, of what was learned of the track; it must have runs."""
    queries, min_relevant = pool.data.queries, track.config.scores.min_relevant
    k = min(K, track.depth)
    with threadpool_limits(1):
        scores = expected_scores(pool.learned, queries, k, min_relevant, draws, seed, pool.data.others)
    names, judged = tuple(track.runs), _judged(queries, k)
    means = np.round(scores.means[0], TIE_DECIMALS).tolist()
    order = sorted(range(len(names)), key=lambda at: (-means[at], names[at]))
    board = LearnedBoard(
        (f"nDCG@{k}", f"AP(rel={min_relevant})@{track.depth}"),
        tuple(query.passages.query_id for query in queries),
        tuple(names[at] for at in order),
        tuple(judged[at] for at in order),
        ExpectedScores(scores.values[:, order], scores.drawn[..., order], scores.refitted[..., order]),
        these_queries,
        _judged_a_query(queries),
        enough_judged(queries),
        pool.notes,
    )
    return board.noted(board.summary())


def enough_judged(queries: Sequence[PooledQueryToLearn]) -> bool:
    """Whether enough is judged for 95% intervals that hold the truth about so often.

    As many as `MIN_JUDGED` a query, a share of `MIN_SHARE`, or passages that are retrieved as the others are.
    """
    n_pooled = sum(len(query.doc_ids) for query in queries)
    n_judged = _judged_a_query(queries) * len(queries)
    return n_judged >= min(MIN_JUDGED * len(queries), MIN_SHARE * n_pooled) or retrieved_alike(queries)


def _judged_a_query(queries: Sequence[PooledQueryToLearn]) -> float:
    return sum(int((~np.isnan(query.judgments)).sum()) for query in queries) / len(queries)


def _judged(queries: Sequence[PooledQueryToLearn], k: int) -> list[float]:
    """Of each run the share of its first k passages that are judged; 0 where it has none."""
    retrieved = judged = np.zeros(len(queries[0].ranks), np.int64)
    for query in queries:
        top = query.ranks[:, :k]
        known = np.append(~np.isnan(query.judgments), False)
        retrieved = retrieved + (top >= 0).sum(axis=1)
        judged = judged + known[top].sum(axis=1)
    shares: list[float] = (judged / np.maximum(retrieved, 1)).tolist()
    return shares
