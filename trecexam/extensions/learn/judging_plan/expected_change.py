"""What more judgments are expected to do to a leaderboard, and what of it is undecided yet.

All is from draws of what people would say of the passages that nobody judged (`PosteriorLabels`), with what
was fitted held as it is. Leaderboards are by nDCG@10, means over queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.features import Floats
from trecexam.extensions.learn.arithmetic.learning import Learned, predict
from trecexam.extensions.learn.arithmetic.ndcg import ndcg
from trecexam.extensions.learn.arithmetic.pooled import PooledQueryToLearn
from trecexam.extensions.learn.arithmetic.posterior_labels import PosteriorLabels
from trecexam.extensions.learn.arithmetic.process import joint_posterior
from trecexam.scores.rank_correlation.tau import tau_b_columns
from trecexam.scores.values import TIE_DECIMALS

#: Ranks that count in nDCG; draws that are made; the share of draws that decides the order of two runs.
K, DRAWS, SURE = 10, 100, 0.95


class Undecided(NamedTuple):
    """Pairs of runs whose order is undecided: more than 5% of the draws have the other order.

    Attributes:
        neighbours: of the `n_neighbours` pairs that are next to each other by expected gains.
        pairs: of all `n_pairs`.
    """

    neighbours: int
    n_neighbours: int
    pairs: int
    n_pairs: int


class DrawnLeaderboards:
    """Leaderboards with draws of what people would say in place of judgments that are not there.

    Attributes:
        expected: nDCG@10 by expected gains, shape (runs,).
        drawn: by each draw, shape (runs, draws).

    Args:
        learned: from these queries, with a Gaussian process.
        queries: at least one. A passage that has neither judgment nor text has gain 0.
        seed: of the draws.
    """

    def __init__(
        self, learned: Learned, queries: Sequence[PooledQueryToLearn], draws: int = DRAWS, seed: int = 0
    ) -> None:
        self._learned = learned
        self._queries = queries
        labels = PosteriorLabels(learned, queries, draws, seed)
        self._judgments = [labels.draw(at)[:, query.rows] for at, query in enumerate(queries)]
        self.expected = self._board([predict(learned, query.passages).gains[None] for query in queries])[:, 0]
        self.drawn = self._board(self._judgments)

    @property
    def undecided(self) -> Undecided:
        """Which orders of runs are undecided."""
        ordered = self.drawn[np.argsort(-self.expected, kind="stable")]
        other_order = [
            (ordered[at + 1 :] > ordered[at]).mean(axis=1) > 1 - SURE for at in range(len(ordered) - 1)
        ]
        return Undecided(
            sum(bool(below[0]) for below in other_order),
            len(other_order),
            sum(int(below.sum()) for below in other_order),
            sum(map(len, other_order)),
        )

    def after(self, judged: Sequence[Sequence[int]]) -> Floats:
        """By expected gains once these are judged, too, as each draw has it; shape (runs, draws).

        The expected gains of passages u after judgments y of passages s are mean(u) + cov(u, s) cov(s, s)^-1
        (y - mean(s)), with mean and covariance of `joint_posterior`, held to the scale.

        Args:
            judged: of each query the places among its `doc_ids`.
        """
        return self._board(
            [
                self._gains_after(query, drawn, rows)
                for query, drawn, rows in zip(self._queries, self._judgments, judged, strict=True)
            ]
        )

    def _gains_after(self, query: PooledQueryToLearn, drawn: Floats, judged: Sequence[int]) -> Floats:
        passages = query.passages
        assert self._learned.kernel is not None
        unknown = np.flatnonzero(np.isnan(passages.judgments))
        base = self._learned.steps.gains(passages.features)
        rows = np.flatnonzero(np.isin(query.rows[unknown], judged))
        answers = drawn[:, unknown]
        gains = np.broadcast_to(base[unknown], answers.shape).copy()
        known = np.flatnonzero(~np.isnan(passages.judgments))
        mean, covariance = joint_posterior(
            self._learned.kernel,
            passages.vectors[known],
            passages.judgments[known] - base[known],
            passages.vectors[unknown],
        )
        gains += mean
        shifts = np.linalg.solve(covariance[np.ix_(rows, rows)], covariance[rows])
        gains += (answers[:, rows] - gains[:, rows]) @ shifts
        gains[:, rows] = answers[:, rows]
        after = drawn.copy()
        after[:, unknown] = np.clip(gains, *self._learned.steps.scale[[0, -1]])
        return after

    def _board(self, gains: Sequence[Floats]) -> Floats:
        """Of gains of each query's passages with a text, shape (boards, passages); shape (runs, boards)."""
        total: NDArray[np.float64] | float = 0.0
        for query, of_query in zip(self._queries, gains, strict=True):
            whole = np.tile(np.nan_to_num(query.judgments), (len(of_query), 1))
            whole[:, query.rows] = of_query
            total = total + np.column_stack([ndcg(query.ranks, row, K, query.elsewhere) for row in whole])
        return np.round(np.asarray(total) / len(self._queries), TIE_DECIMALS)


def expected_change(before: Floats, after: Floats) -> float:
    """How far judgments are expected to move a leaderboard: 1 - the mean tau of what it is before and after.

    The mean over draws d of 1 - tau(leaderboard before, leaderboard after the judgments that d gives), with
    Kendall's tau-b; 0 of a draw where all runs are tied.

    Args:
        before, after: as of `DrawnLeaderboards.after`.
    """
    return float(np.mean(1 - np.nan_to_num(tau_b_columns(before, after), nan=1.0)))
