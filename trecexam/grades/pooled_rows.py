"""Runs joined with judgments through the pool, which knows already at which ranks each passage stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from converters.arrow import numbers, strings
from converters.run import Run
from trecexam.grades.graded_track import GradedTrack
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import Ranked

#: Stands beyond the end of a ranking.
_NOTHING = -2


@dataclass(frozen=True, eq=False)
class PooledRows:
    """Rows in some judgments of the passages at the first ranks of some runs.

    One join of each query's pool with its judgments serves all of these runs.

    Attributes:
        query_ids: those of the judgments.
        place: run -> its place in `rows`.
        rows: int32 of shape (runs, queries, depth); -1 where the judgments do not have the passage.
    """

    query_ids: tuple[str, ...]
    place: dict[str, int]
    rows: NDArray[np.int32]

    @classmethod
    def of(
        cls, track: GradedTrack, runs: Sequence[Run], judged: Judged, depth: int | None
    ) -> PooledRows | None:
        """Join the first `depth` ranks; None where the pool is not that deep, or lacks queries.

        Args:
            runs: of the track.
            depth: None for whole rankings, which the pool has where none is longer than it is deep.
        """
        longest = max((int(np.diff(run.offsets).max(initial=0)) for run in runs), default=0)
        depth = longest if depth is None else min(depth, longest)
        if depth > track.depth or not track.pool.keys() >= set(judged.query_ids):
            return None
        run_index = {run: number for number, run in enumerate(track.runs)}
        of_runs = [run_index[run.name] for run in runs]
        rows = np.full((len(runs), len(judged.query_ids), depth), _NOTHING, np.int32)
        starts = judged.offsets.tolist()
        for number, query_id in enumerate(judged.query_ids):
            pooled = track.pool[query_id]
            ranks = pooled.ranks[of_runs, :depth]
            doc_ids = strings(pooled.doc_ids)
            row_indices = pc.call_function("index_in", [doc_ids], judged.lookups[number])
            row_of = numbers(row_indices).astype(np.int32)
            row_of = np.append(np.where(row_of >= 0, row_of + starts[number], -1), _NOTHING)
            rows[:, number, : ranks.shape[1]] = row_of[ranks]
        return cls(judged.query_ids, {run.name: number for number, run in enumerate(runs)}, rows)

    def ranked(self, run: Run) -> Ranked:
        """Return the run's join with the judgments, as `trecexam.scores.columns.ranked.rows_at_ranks`."""
        of_run = self.rows[self.place[run.name]]
        has_row = of_run != _NOTHING
        offsets = np.concatenate(([0], np.cumsum(has_row.sum(axis=1)))).astype(np.int64)
        retrieved = np.array([run.count(query_id) for query_id in self.query_ids], np.int64)
        return Ranked(offsets, of_run[has_row], retrieved)
