"""The passages of each query that nuggets are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from converters.records import Qrel
from trecexam.bank.model import QUERY
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import Needs, read_inputs
from trecexam.inputs.pool import PooledQuery, Texts, document_texts, pool_with_ranks

#: The default number of passages per query.
PASSAGES = 50


def nugget_passages(
    folder: TrackFolder, query_ids: Sequence[str], number: int = PASSAGES
) -> Mapping[str, tuple[str, ...]]:
    """The texts of each query's first relevant passages; of one without any, of its top-ranked ones.

    Relevant is what has an official label of min_relevant or better: the highest label comes first, then the
    best rank in any run, then the id. Top-ranked are the passages by their best rank in any run, then by id;
    of a query that no run ranks passages for they are those that responses cite, the first cited first. What
    responses say is no source, nor are passages without a text.

    Args:
        number: of passages, at least 1; fewer where there are no more.

    Returns:
        query_id -> texts, for every query; () where there is no passage.

    Raises:
        ConversionError: an input that the settings name cannot be read.
        TrackError: runs or judgments name passages, and the track has none.
    """
    if not query_ids:
        return {}
    # Responses rank what they cite.
    section = folder.config.track.model_copy(update={"pool": "citations", "unit": "passage"})
    citing = replace(folder, config=folder.config.model_copy(update={"track": section}))
    # The bank's queries are those that need no nuggets.
    inputs = read_inputs(citing, Needs(frozenset((QUERY,)), known_queries=query_ids), bank_files=())
    ranked = [run for name, run in inputs.runs.items() if name not in inputs.dropped.generated]
    cited = [run for name, run in inputs.runs.items() if name in inputs.dropped.generated]
    pooled = dict(pool_with_ranks(ranked, query_ids, number))
    without = [query_id for query_id in query_ids if not pooled[query_id].doc_ids]
    pooled |= pool_with_ranks(cited, without, number)
    relevant = _relevant(inputs.official or (), folder.config.scores.min_relevant)
    ordered = {query_id: _ordered(pooled[query_id], relevant.get(query_id, {})) for query_id in query_ids}
    needed = {doc_id for doc_ids in ordered.values() for doc_id in doc_ids}
    document_store = Texts(folder)
    read = bool(needed) and (document_store.has_source or needed.isdisjoint(inputs.dropped.documents))
    texts = document_texts(needed, inputs, document_store, read=read)[0]
    return {
        query_id: tuple(texts[doc_id] for doc_id in doc_ids if texts.get(doc_id, "").strip())[:number]
        for query_id, doc_ids in ordered.items()
    }


def _relevant(official: Sequence[Qrel], min_relevant: int) -> dict[str, dict[str, int]]:
    """query_id -> doc_id -> label, the best one of several, of relevant passages."""
    labels: dict[str, dict[str, int]] = {}
    for row in official:
        if row.relevance >= min_relevant:
            of_query = labels.setdefault(row.query_id, {})
            of_query[row.doc_id] = max(row.relevance, of_query.get(row.doc_id, row.relevance))
    return labels


def _ordered(pooled: PooledQuery, relevant: Mapping[str, int]) -> list[str]:
    best: dict[str, int] = {}
    for rank, row_indices in enumerate(pooled.ranks.T.tolist()):
        for row_index in row_indices:
            if row_index >= 0:
                best.setdefault(pooled.doc_ids[row_index], rank)
    last = pooled.ranks.shape[1]
    return sorted(
        relevant or best, key=lambda doc_id: (-relevant.get(doc_id, 0), best.get(doc_id, last), doc_id)
    )
