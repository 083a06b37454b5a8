"""Labels of documents: the metric's values of stored outputs or of outputs in a file.

And two that eRAG is compared with, for which no model runs: "Containing the Answer" and "KILT Provenance" of
Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from converters.errors import ConversionError
from converters.records import Item, Qrel
from trecexam.extensions.erag.grader import Label
from trecexam.extensions.erag.metrics import normalised
from trecexam.graders.replies import RAISE_LIMIT

if TYPE_CHECKING:
    from trecexam.extensions.erag.downstream import DocumentOutput
    from trecexam.grades.graded_track import GradedTrack

#: What labels are made of: the model's outputs, or one of the baselines.
OUTPUTS, CONTAINS_ANSWER, PROVENANCE = "outputs", "contains-answer", "provenance"
SOURCES = (OUTPUTS, CONTAINS_ANSWER, PROVENANCE)
#: run -> query_id -> its doc_ids, best first, as far as they count.
Ranked = Mapping[str, Mapping[str, Sequence[str]]]


class LabelOutput(Protocol):
    """The label of an output."""

    def __call__(self, item: Item, output: str, /) -> Label: ...


class Unlabelled(NamedTuple):
    """A ranked document without a label, which counts as 0.

    `status` is "missing" where there is no text to answer from, or no output in the file; "unanswered" where
    the model is still to be asked; "refused" or "error" where it gave no output; "unparsed" where the metric
    gave no score.
    """

    query_id: str
    doc_id: str
    status: str
    reason: str


class _Output(NamedTuple):
    """An output, or None with the reason."""

    text: str | None
    status: str = "unparsed"
    reason: str = ""


@dataclass(frozen=True)
class Labelled:
    """The labels of all documents of the lists.

    Attributes:
        labels: query_id -> doc_id -> label 0..1; both sorted.
        unlabelled: the documents without one.
        empty: outputs that were empty; the metric has its say on them as on others.
    """

    labels: Mapping[str, Mapping[str, float]]
    unlabelled: tuple[Unlabelled, ...]
    empty: int


def from_grades(track: GradedTrack, label: LabelOutput, ranked: Ranked, query_ids: Sequence[str]) -> Labelled:
    """Labels from the outputs in the track's store.

    Args:
        track: loaded, with a pool that has these lists.
    """
    golds = {query_id: track.bank.items[query_id][0] for query_id in query_ids}
    rows: dict[tuple[str, str], tuple[str, str, bool]] = {}
    for row in track.grade_rows(frozenset(query_ids)):
        rows[row["query_id"], row["doc_id"]] = row["status"], row["answer"], "cut_at" in row

    def output_of(query_id: str, doc_id: str) -> _Output:
        if (query_id, doc_id) not in rows:
            if doc_id in track.sheets[query_id].without_text:
                return _Output(None, "missing", "the document has no text")
            return _Output(None, "unanswered", "the model did not answer yet")
        status, answer, cut = rows[query_id, doc_id]
        if cut:
            return _Output(None, "unparsed", RAISE_LIMIT)
        return _Output(answer) if status in ("ok", "unparsed") else _Output(None, status, answer)

    return _labelled(golds, label, ranked, query_ids, output_of)


def from_outputs(
    outputs: Iterable[DocumentOutput],
    golds: Mapping[str, Item],
    label: LabelOutput,
    ranked: Ranked,
    path: Path,
    refuse: Callable[[ConversionError], None],
) -> Labelled:
    """Labels from outputs in a file.

    Args:
        golds: query_id -> gold outputs, of the queries that count.
        refuse: takes what is wrong with a line: an unknown query or document, a second output.
    """
    texts: dict[tuple[str, str], tuple[str, int]] = {}
    ranked_pairs = frozenset(documents(ranked, sorted(golds)))
    for row in outputs:
        key = row.query_id, row.doc_id
        where = f"document '{row.doc_id}' of query '{row.query_id}'"
        if row.query_id not in golds:
            reason = f"query '{row.query_id}' has no gold outputs, or is not in the track"
        elif key not in ranked_pairs:
            reason = f"{where} is in no run"
        elif key in texts:
            reason = f"{where} has an output already (line {texts[key][1]}); the first one counts"
        else:
            texts[key] = row.output, row.line
            continue
        refuse(ConversionError(path, row.line, reason))

    def output_of(query_id: str, doc_id: str) -> _Output:
        row = texts.get((query_id, doc_id))
        return _Output(None, "missing", "no output in the file") if row is None else _Output(row[0])

    return _labelled(golds, label, ranked, sorted(golds), output_of)


def contains_answer(text: str, gold: Iterable[str]) -> bool:
    """Whether a text contains a gold answer as consecutive words, both normalised as for `em`."""
    words = f" {normalised(text)} "
    return any(answer and f" {answer} " in words for answer in map(normalised, gold))


def from_texts(texts: Mapping[str, str], golds: Mapping[str, Item], ranked: Ranked) -> Labelled:
    """1 for ranked documents that contain a gold answer, 0 for others with a text.

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
    """1 for documents in the provenance, ranked or not; 0 for other ranked documents."""
    labels: dict[str, dict[str, float]] = {}
    for query_id, doc_id in documents(ranked, sorted(query_ids)):
        labels.setdefault(query_id, {})[doc_id] = 0.0
    for row in qrels:
        if row.relevance > 0 and row.query_id in query_ids:
            labels.setdefault(row.query_id, {})[row.doc_id] = 1.0
    return Labelled({query_id: dict(sorted(labels[query_id].items())) for query_id in sorted(labels)}, (), 0)


def _labelled(
    golds: Mapping[str, Item],
    label: LabelOutput,
    ranked: Ranked,
    query_ids: Sequence[str],
    output_of: Callable[[str, str], _Output],
) -> Labelled:
    labels: dict[str, dict[str, float]] = {}
    unlabelled: list[Unlabelled] = []
    empty = 0
    for query_id, doc_id in documents(ranked, query_ids):
        output, status, reason = output_of(query_id, doc_id)
        if output is not None:
            empty += not output.strip()
            value, reason = label(golds[query_id], output)
            if value is not None:
                labels.setdefault(query_id, {})[doc_id] = value
                continue
        unlabelled.append(Unlabelled(query_id, doc_id, status, reason))
    return Labelled(labels, tuple(unlabelled), empty)


def documents(ranked: Ranked, query_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(query_id, doc_id) of all ranked documents, sorted within a query."""
    for query_id in query_ids:
        docs = {doc_id for lists in ranked.values() for doc_id in lists.get(query_id, ())}
        yield from ((query_id, doc_id) for doc_id in sorted(docs))
