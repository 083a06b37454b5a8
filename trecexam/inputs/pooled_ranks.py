"""Runs of a track joined with judgments, by one join of each query's pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow.compute as pc

from converters.arrow import numbers, strings
from converters.run import Run
from trecexam.inputs.pool import PooledQuery
from trecexam.scores.columns.judged import Judged
from trecexam.scores.columns.ranked import Ranked

#: Stands beyond the end of a ranking.
_NOTHING = -2


def pooled_ranks(
    pool: Mapping[str, PooledQuery],
    pool_depth: int,
    names: Iterable[str],
    runs: Sequence[Run],
    judged: Judged,
    depth: int | None,
) -> list[Ranked] | None:
    """Return runs' joins with judgments as `rows_at_ranks`, by one join of each query's pool.

    Args:
        names: all pooled runs.
        depth: the first ranks that are joined; None for whole rankings.

    Returns:
        None where the pool is not that deep, or lacks queries.
    """
    longest = max((int(np.diff(run.offsets).max(initial=0)) for run in runs), default=0)
    depth = longest if depth is None else min(depth, longest)
    if depth > pool_depth or not pool.keys() >= set(judged.query_ids):
        return None
    run_index = {run: number for number, run in enumerate(names)}
    of_runs = [run_index[run.name] for run in runs]
    rows = np.full((len(runs), len(judged.query_ids), depth), _NOTHING, np.int32)
    for number, query_id in enumerate(judged.query_ids):
        pooled = pool[query_id]
        ranks = pooled.ranks[of_runs, :depth]
        at = pc.call_function("index_in", [strings(pooled.doc_ids)], judged.lookups[number])
        row_of = numbers(at).astype(np.int32)
        # The last one is for rank -1, beyond the end of a ranking.
        row_of = np.append(np.where(row_of >= 0, row_of + judged.offsets[number], -1), _NOTHING)
        rows[:, number, : ranks.shape[1]] = row_of[ranks]
    joins = []
    for run, of_run in zip(runs, rows, strict=True):
        has_row = of_run != _NOTHING
        offsets = np.concatenate(([0], np.cumsum(has_row.sum(axis=1)))).astype(np.int64)
        retrieved = np.array([*map(run.count, judged.query_ids)], np.int64)
        joins.append(Ranked(offsets, of_run[has_row], retrieved))
    return joins
