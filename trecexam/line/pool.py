"""Which (query, passage) pairs are in the pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from converters.run import Run


def pool(runs: Iterable[Run], query_ids: Iterable[str], depth: int) -> Mapping[str, tuple[str, ...]]:
    """The first `depth` passages of each run, per query.

    Returns:
        query_id -> doc_ids, sorted; every query of `query_ids` is there, with () where no run answers it.
    """
    pooled: dict[str, set[str]] = {query_id: set() for query_id in query_ids}
    for run in runs:
        for query_id, docs in pooled.items():
            docs.update(run.ranking(query_id, depth))
    return {query_id: tuple(sorted(docs)) for query_id, docs in pooled.items()}
