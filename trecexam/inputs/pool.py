"""Pooled passages of each query, and the rank of each in each run.

The pool is the first ranks of all runs and, where `[track] pool_judged` says so, "all passages in official
judgments" beside them (the pool of the Rubric papers): these are at no rank.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from converters.arrow import column, numbers, strings
from converters.run import Run


@dataclass(frozen=True, eq=False)
class PooledQuery:
    """The first passages of all runs for one query, and judged ones beside them.

    Attributes:
        doc_ids: the pooled passages, sorted.
        ranks: int32 of shape (runs, depth): the place among `doc_ids` of the passage at each rank; -1
            beyond the end of a run's ranking.
        n_judged_only: how many passages are at none of these ranks: they are pooled since they are judged.
    """

    doc_ids: tuple[str, ...]
    ranks: NDArray[np.int32]
    n_judged_only: int = 0

    @property
    def ranked(self) -> tuple[str, ...]:
        """The passages at these ranks, sorted."""
        if not self.n_judged_only:
            return self.doc_ids
        return tuple(self.doc_ids[at] for at in np.unique(self.ranks[self.ranks >= 0]).tolist())

    def with_judged(self, doc_ids: Collection[str]) -> PooledQuery:
        """Return the same ranks in a pool that has these passages, too."""
        judged_only = set(doc_ids).difference(self.doc_ids)
        if not judged_only:
            return self
        every = tuple(sorted(judged_only.union(self.doc_ids)))
        row = {doc_id: at for at, doc_id in enumerate(every)}
        # The last one is for rank -1.
        row_now = np.array([*map(row.__getitem__, self.doc_ids), -1], np.int32)
        return PooledQuery(every, row_now[self.ranks], self.n_judged_only + len(judged_only))


def pool_with_ranks(runs: Sequence[Run], query_ids: Iterable[str], depth: int) -> Mapping[str, PooledQuery]:
    """Pool the first `depth` passages of each run; every query of `query_ids` is there."""
    import pyarrow as pa

    queries = list(query_ids)
    query_index = {query_id: number for number, query_id in enumerate(queries)}
    parts, lengths = [], np.zeros((len(runs), len(queries)), np.int64)
    query_of: list[NDArray[np.int64]] = []
    for number, run in enumerate(runs):
        at = np.array([query_index.get(query_id, -1) for query_id in run.query_ids], np.int64)
        offsets, top = run.top(depth)
        counts = np.diff(offsets)
        lengths[number, at[at >= 0]] = counts[at >= 0]
        parts.append(top)
        query_of.append(np.repeat(at, counts))
    # All runs' passages of a query, one after the other; those of queries that are not meant come first.
    query_of_entry = np.concatenate([np.empty(0, np.int64), *query_of])
    order = np.argsort(query_of_entry, kind="stable")[int((query_of_entry < 0).sum()) :]
    doc_ids = pa.concat_arrays(parts).take(column(order)) if parts else strings(())
    bounds = np.concatenate(([0], np.cumsum(lengths.sum(axis=0)))).tolist()
    pooled: dict[str, PooledQuery] = {}
    for number, query_id in enumerate(queries):
        of_query = lengths[:, number]
        ranks = np.full((len(runs), int(of_query.max(initial=0))), -1, np.int32)
        encoded = doc_ids[bounds[number] : bounds[number + 1]].dictionary_encode()
        first_seen: list[str] = encoded.dictionary.to_pylist()
        by_id = sorted(range(len(first_seen)), key=first_seen.__getitem__)
        row = np.empty(len(by_id), np.int32)
        row[by_id] = np.arange(len(by_id), dtype=np.int32)
        ranks[np.arange(ranks.shape[1]) < of_query[:, None]] = row[numbers(encoded.indices)]
        pooled[query_id] = PooledQuery(tuple(first_seen[at] for at in by_id), ranks)
    return pooled
