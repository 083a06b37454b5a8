"""The labels that eRAG is compared with: gold answers in documents, and provenance. No model runs.

Baselines of Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024:
"Containing the Answer" and "KILT Provenance".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from converters.records import Item, Qrel
from trecexam.extensions.erag.labels import Labelled, Ranked, Unlabelled, documents
from trecexam.extensions.erag.metrics import normalised

#: What labels are made of: the model's outputs, or one of the baselines.
OUTPUTS, CONTAINS_ANSWER, PROVENANCE = "outputs", "contains-answer", "provenance"
SOURCES = (OUTPUTS, CONTAINS_ANSWER, PROVENANCE)


def contains_answer(text: str, gold: Iterable[str]) -> bool:
    """Whether the words of a gold answer stand in a text one after the other, both normalised as for `em`."""
    words = f" {normalised(text)} "
    return any(answer and f" {answer} " in words for answer in map(normalised, gold))


def from_texts(texts: Mapping[str, str], golds: Mapping[str, Item], ranked: Ranked) -> Labelled:
    """1 for the documents of the lists that contain a gold answer, 0 for the others that have a text.

    Args:
        golds: query_id -> gold outputs, of the queries that count.
    """
    labels: dict[str, dict[str, float]] = {}
    unlabelled = []
    for query_id, doc_id in documents(ranked, sorted(golds)):
        if doc_id not in texts:
            unlabelled.append(Unlabelled(query_id, doc_id, "missing", "the document has no text"))
            continue
        item = golds[query_id]
        has_answer = contains_answer(texts[doc_id], item.gold_answers or (item.text,))
        labels.setdefault(query_id, {})[doc_id] = float(has_answer)
    return Labelled(labels, tuple(unlabelled), 0)


def from_provenance(qrels: Iterable[Qrel], query_ids: Collection[str], ranked: Ranked) -> Labelled:
    """1 for the documents that the provenance names, in a list or not, 0 for the others of the lists."""
    labels: dict[str, dict[str, float]] = {}
    for query_id, doc_id in documents(ranked, sorted(query_ids)):
        labels.setdefault(query_id, {})[doc_id] = 0.0
    for row in qrels:
        if row.relevance > 0 and row.query_id in query_ids:
            labels.setdefault(row.query_id, {})[row.doc_id] = 1.0
    return Labelled({query_id: dict(sorted(labels[query_id].items())) for query_id in sorted(labels)}, (), 0)


def ranked_documents(ranked: Ranked, query_ids: Sequence[str]) -> frozenset[str]:
    """The documents of the lists."""
    return frozenset(doc_id for _, doc_id in documents(ranked, query_ids))
