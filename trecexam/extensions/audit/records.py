"""Runs and judgments as arrays: the inputs of the audit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from ir_measures import Measure, nDCG
from numpy.typing import NDArray

from trecexam.scores.columns import UNJUDGED, Hits, Judged, Ranked
from trecexam.scores.columns.measures import MEASURES
from trecexam.scores.values import TIE_DECIMALS

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]
Bools = NDArray[np.bool_]
Names = NDArray[np.object_]
#: The depth of the audit.
DEPTH = 20
#: Level of each test, after Holm's adjustment.
ALPHA = 0.01


@dataclass(frozen=True, eq=False)
class Side:
    """A set of judgments.

    Attributes:
        name: file name without suffix.
        judged: all passages that any side judged or any run has in its first `DEPTH` ranks, with this side's
            labels; `UNJUDGED` where this side has no label.
    """

    name: str
    judged: Judged

    @property
    def labels(self) -> Rows:
        """The labels that this side gave."""
        return np.asarray(self.judged.labels[self.judged.labels != UNJUDGED])

    @cached_property
    def thresholds(self) -> tuple[int, ...]:
        """Return the lowest five labels from 1 on: a passage may count as relevant from each of them on."""
        return tuple(np.unique(self.labels[self.labels > 0])[:5].tolist())


@dataclass(frozen=True, eq=False)
class AuditInputs:
    """Runs and judgments as arrays.

    Attributes:
        runs: names of the runs.
        teams: team of each run; the run's own name if unknown.
        sides: one or two, over the queries judged by all sides and present in some run; the first is the
            reference.
        rows: shape (runs, queries, DEPTH): the row in `Side.judged` of the passage at each rank; -1 beyond a
            list's end.
        cutoff: k of the main measure, nDCG@k.
        judge_run: the name of the judge's own ranking, and its rows, shape (queries, DEPTH); or None.
        notes: skipped inputs, with reasons.
        rejected: unreadable run files, with reasons.
        larger: the name of the side that contains all labels of the other; "" if neither does.
    """

    runs: Names
    teams: Names
    sides: tuple[Side, ...]
    rows: Rows
    cutoff: int = 10
    judge_run: tuple[str, Rows] | None = None
    notes: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    larger: str = ""

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return int(self.rows.shape[1])

    @cached_property
    def common(self) -> NDArray[np.intp]:
        """Rows of the passages that all sides judged."""
        return np.flatnonzero(np.all([side.judged.labels != UNJUDGED for side in self.sides], axis=0))

    @cached_property
    def team_of_run(self) -> NDArray[np.intp]:
        """Index of each run's team among the sorted teams."""
        return np.unique(self.teams, return_inverse=True)[1]

    def values(self, side: Side, measures: Iterable[Measure]) -> Floats:
        """Return every run's value on every query, bit for bit as trec_eval's; unjudged passages count as 0.

        The shape is (measures, runs, queries).
        """
        computations = [
            MEASURES[measure.NAME or ""].computation(measure, side.judged) for measure in measures
        ]
        offsets = np.arange(self.n_queries + 1) * DEPTH
        by_run = []
        for rows in self.rows:
            n_retrieved = np.count_nonzero(rows >= 0, axis=1)
            hits = Hits.of(Ranked(offsets, rows.ravel(), n_retrieved), side.judged)
            by_run.append([compute(hits) for compute in computations])
        return np.asarray(np.array(by_run).swapaxes(0, 1))

    def main_values(self, side: Side) -> Floats:
        """Return the values of the main measure; shape (runs, queries)."""
        return np.asarray(self.values(side, [nDCG @ self.cutoff])[0])


def ranks_of(means: Floats) -> NDArray[np.intp]:
    """Return ranks from 1, the best; tied runs share the best of their ranks."""
    rounded = np.round(means, TIE_DECIMALS)
    return np.asarray(1 + (rounded[None, :] > rounded[:, None]).sum(axis=1))
