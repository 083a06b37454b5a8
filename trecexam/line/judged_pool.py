"""The judged passages that no run has in its first ranks: what `[track] pool_judged` adds to the pool."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from converters.gold import KIND as GOLD
from converters.records import judgment
from trecexam.bank.model import QUERY
from trecexam.files.stamps import Rejected
from trecexam.folder import TrackFolder
from trecexam.line.inputs import Needs, TrackInputs, read_inputs
from trecexam.line.pool import PooledQuery, pool_with_ranks

#: query_id -> doc_ids
Passages = Mapping[str, Collection[str]]


def judged_outside(
    inputs: TrackInputs, pooled: Mapping[str, PooledQuery], *, exclude_query_document: bool
) -> dict[str, set[str]]:
    """The passages that the official judgments have for queries of the pool, and the pool does not.

    Returns:
        query_id -> doc_ids; only queries that have some.
    """
    outside: dict[str, set[str]] = {}
    for row in inputs.official or ():
        if judgment(row.relevance) is not None and row.query_id in pooled:
            outside.setdefault(row.query_id, set()).add(row.doc_id)
    for query_id, doc_ids in outside.items():
        doc_ids.difference_update(pooled[query_id].doc_ids)
        if exclude_query_document:
            doc_ids.discard(query_id)
    return {query_id: doc_ids for query_id, doc_ids in outside.items() if doc_ids}


def judged_without_text(folder: TrackFolder, outside: Passages, gradable: Passages) -> Iterator[Rejected]:
    """A row that counts the judged passages that are not pooled, where there are such.

    Args:
        outside: as `judged_outside` gives them.
        gradable: those of them that have a text.
    """
    lost = [
        (query_id, doc_id)
        for query_id, doc_ids in outside.items()
        for doc_id in sorted(doc_ids)
        if doc_id not in gradable[query_id]
    ]
    if lost:
        file = folder.qrels()
        query_id, doc_id = lost[0]
        yield Rejected(
            str(folder.config.track.dataset) if file is None else folder.shown(file),
            None,
            f"{len(lost):,} of {sum(map(len, outside.values())):,} judged passages outside of the runs' "
            f"first ranks have no text to grade and are not pooled, '{doc_id}' of query '{query_id}' among "
            "them",
            "cell",
        )


def count_judged_outside(folder: TrackFolder) -> int:
    """Count the judged passages of the bank's queries that no run has in its first `depth` ranks."""
    kinds = ("question", "nugget", GOLD) if folder.bank(optional=True) else (QUERY,)
    inputs = read_inputs(folder, Needs(frozenset(kinds)))
    runs = tuple(inputs.runs.values())
    track = folder.config.track
    pooled = pool_with_ranks(runs, inputs.bank.query_ids, track.depth)
    outside = judged_outside(inputs, pooled, exclude_query_document=track.exclude_query_document)
    return sum(map(len, outside.values())) if _meet(inputs) else 0


def _meet(inputs: TrackInputs) -> bool:
    """Whether a run has a judged passage, at any rank; true where there are no runs."""
    judged_ids = {row.doc_id for row in inputs.official or ()}
    rankings = (run.ranking(query_id) for run in inputs.runs.values() for query_id in run.query_ids)
    return not inputs.runs or any(not judged_ids.isdisjoint(ranking) for ranking in rankings)
