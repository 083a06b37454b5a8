"""Source passages of nuggets for each query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from converters.run import Run
from trecexam.bank.model import QUERY
from trecexam.folder import TrackFolder
from trecexam.inputs.inputs import Needs, read_inputs
from trecexam.inputs.pool import Texts, document_texts

#: The default number of passages per query.
PASSAGES = 50


def nugget_passages(
    folder: TrackFolder, query_ids: Sequence[str], number: int = PASSAGES
) -> Mapping[str, tuple[str, ...]]:
    """Return query_id -> texts of the first relevant passages, or else of the top-ranked passages.

    Relevant passages come in the order of their labels (the highest first), then of their best rank in any
    run, then of their ids; top-ranked ones by rank and id. Without ranked passages, cited passages of
    responses are used. Texts of responses and passages without a text are no source.
    """
    if not query_ids:
        return {}
    # Responses rank what they cite.
    section = folder.config.track.model_copy(update={"pool": "citations", "unit": "passage"})
    citing = replace(folder, config=folder.config.model_copy(update={"track": section}))
    # The bank's queries need no nuggets.
    inputs = read_inputs(citing, Needs(frozenset((QUERY,)), known_queries=query_ids), bank_files=())
    ranked = [run for name, run in inputs.runs.items() if name not in inputs.dropped.generated]
    cited = [run for name, run in inputs.runs.items() if name in inputs.dropped.generated]
    min_relevant = folder.config.scores.min_relevant
    ordered: dict[str, list[str]] = {}
    for query_id in query_ids:
        best = _best_ranks(ranked, query_id, number) or _best_ranks(cited, query_id, number)
        judged = inputs.judged.get(query_id, {}).items()
        labels = {doc_id: label for doc_id, label in judged if label >= min_relevant}
        ordered[query_id] = sorted(
            labels or best, key=lambda each: (-labels.get(each, 0), best.get(each, number), each)
        )
    needed = {doc_id for doc_ids in ordered.values() for doc_id in doc_ids}
    document_store = Texts(folder)
    read = bool(needed) and (document_store.has_source or needed.isdisjoint(inputs.dropped.documents))
    texts = document_texts(needed, inputs, document_store, read=read)[0]
    return {
        query_id: tuple(texts[doc_id] for doc_id in doc_ids if texts.get(doc_id, "").strip())[:number]
        for query_id, doc_ids in ordered.items()
    }


def _best_ranks(runs: Iterable[Run], query_id: str, number: int) -> dict[str, int]:
    """Return doc_id -> best rank in any run, within the first passages of each run."""
    best: dict[str, int] = {}
    for run in runs:
        for rank, doc_id in enumerate(run.ranking(query_id, number)):
            best[doc_id] = min(rank, best.get(doc_id, rank))
    return best
