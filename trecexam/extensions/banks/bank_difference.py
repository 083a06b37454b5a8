"""The difference of two banks on a track: its items, labels, and ranks on each measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trecexam.bank.changes import BankChange
from trecexam.features.history.changes import BoardChange, LabelChange, LeaderboardSnapshot
from trecexam.scores.rank_correlation.ranks import Ranks
from trecexam.scores.rank_correlation.tau import kendall_tau
from trecexam.scores.ties import TIE_DECIMALS


@dataclass(frozen=True)
class BankSide:
    """One of the two banks, on the track's pool.

    Attributes:
        files: as they were named, with the track's other bank files.
        query_ids: the queries that means are over.
        n_items, n_retired: its items; the retired ones are not among the first.
        n_cells: (passage, item) pairs that can be graded, and not those of passages without a text.
        ungraded: (query_id, item_id) -> how many cells of the item have no grade.
        refused: what of the files was not taken, in words.
        own: whether it is the track's bank, which updates grade.
        cautions: what one must know to read its scores, a line each.
    """

    files: tuple[str, ...]
    query_ids: tuple[str, ...]
    n_items: int
    n_retired: int
    n_cells: int
    ungraded: Mapping[tuple[str, str], int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    own: bool = False
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasureDiff:
    """The two leaderboards by one measure.

    `kendall_tau` is tau-b over the runs on both, in -1..1; NaN where it is undefined: fewer than two runs, or
    all tied on one side.
    """

    measure: str
    board: BoardChange
    kendall_tau: float

    @property
    def reranked(self) -> int:
        """Runs on both leaderboards whose rank differs."""
        return sum(row.change == "moved" and row.rank_before != row.rank_after for row in self.board.runs)

    @property
    def moved(self) -> int:
        """Runs on both leaderboards whose rank or mean differs."""
        return sum(row.change == "moved" for row in self.board.runs)


@dataclass(frozen=True)
class BankDiff:
    """What differs between two banks, and on the track's leaderboards by them.

    Attributes:
        items: the items that differ.
        not_asked: those of them that this track's grader does not ask about, as (query_id, item_id).
        reached: (query_id, item_id) -> how many passages reach the item under the old and the new bank; of
            items that are asked about under one of them.
        measures: each measure by itself; means are over all queries of the respective bank.
        in_both: the same over the queries of both banks; () where these are the same queries.
        unused: bank files of the track that neither side has.
    """

    old: BankSide
    new: BankSide
    items: tuple[BankChange, ...]
    not_asked: frozenset[tuple[str, str]]
    reached: Mapping[tuple[str, str], tuple[int, int]]
    measures: tuple[MeasureDiff, ...]
    in_both: tuple[MeasureDiff, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[LabelChange, ...]:
        """The passages with another label, or that reach other items under the same one."""
        return self.measures[0].board.labels if self.measures else ()


def tau_of(before: LeaderboardSnapshot, after: LeaderboardSnapshot) -> float:
    """Kendall's tau-b of two leaderboards by their first measure, over the runs on both; NaN if undefined."""
    shared = sorted(before.runs.keys() & after.runs.keys())
    if len(shared) < 2:
        return math.nan
    means = (_means(side, shared) for side in (before, after))
    old_ranks, new_ranks = (Ranks.of(np.round(np.array(side)[:, None], TIE_DECIMALS)) for side in means)
    return float(kendall_tau(old_ranks, new_ranks)[0])


def _means(snapshot: LeaderboardSnapshot, runs: Sequence[str]) -> list[float]:
    means = (snapshot.runs[run].means[0] for run in runs)
    return [-math.inf if mean is None else mean for mean in means]
