"""Which (query, passage) pairs are in the pool, and at which ranks of which run each of them stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from converters.run import Run


@dataclass(frozen=True, eq=False)
class PooledQuery:
    """The first passages of all runs for one query.

    Attributes:
        doc_ids: the pooled passages, sorted.
        ranks: int32 of shape (runs, depth): the place among `doc_ids` of the passage at each rank; -1
            beyond the end of a run's ranking.
    """

    doc_ids: tuple[str, ...]
    ranks: NDArray[np.int32]


def pool(runs: Iterable[Run], query_ids: Iterable[str], depth: int) -> Mapping[str, tuple[str, ...]]:
    """The first `depth` passages of each run, per query.

    Returns:
        query_id -> doc_ids, sorted; every query of `query_ids` is there, with () where no run answers it.
    """
    pooled = pool_with_ranks(tuple(runs), query_ids, depth)
    return {query_id: of_query.doc_ids for query_id, of_query in pooled.items()}


def pool_with_ranks(runs: Sequence[Run], query_ids: Iterable[str], depth: int) -> Mapping[str, PooledQuery]:
    """The pool as `pool` gives it, with the ranks of each run; every query of `query_ids` is there."""
    import numpy as np
    import pyarrow as pa

    spans = [run.spans for run in runs]
    pooled: dict[str, PooledQuery] = {}
    for query_id in query_ids:
        parts, lengths = [], np.zeros(len(runs), np.int64)
        for number, (run, of_run) in enumerate(zip(runs, spans, strict=True)):
            start, end = of_run.get(query_id, (0, 0))
            if end > start:
                lengths[number] = min(end - start, depth)
                parts.append(run.doc_ids.slice(start, lengths[number]))
        width = int(lengths.max(initial=0))
        ranks = np.full((len(runs), width), -1, np.int32)
        if not parts:
            pooled[query_id] = PooledQuery((), ranks)
            continue
        encoded = pa.concat_arrays(parts).dictionary_encode()
        first_seen: list[str] = encoded.dictionary.to_pylist()
        order = sorted(range(len(first_seen)), key=first_seen.__getitem__)
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        ranks[np.arange(width) < lengths[:, None]] = place[encoded.indices.to_numpy()]
        pooled[query_id] = PooledQuery(tuple(first_seen[at] for at in order), ranks)
    return pooled
