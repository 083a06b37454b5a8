"""Labels of documents: a metric's values of texts, or provenance in official judgments.

The texts are a model's outputs; for the baseline "Containing the Answer", the documents themselves.
Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from converters.errors import ConversionError
from converters.fields import an_id
from converters.lines import iter_filled, parse_object
from trecexam.files.stamps import Rejected
from trecexam.graders.replies import RAISE_LIMIT, Unread

if TYPE_CHECKING:
    from trecexam.grades.graded_track import GradedTrack

#: Sources of labels: the model's outputs, or a baseline.
OUTPUTS, PROVENANCE = "outputs", "provenance"
SOURCES = (OUTPUTS, "contains-answer", PROVENANCE)
Gold = tuple[str, ...]
NO_TEXT = "missing", "the document has no text"
#: (query_id, doc_id) of ranked documents, sorted.
Pairs = Sequence[tuple[str, str]]


class Unlabelled(NamedTuple):
    """A ranked document without a label, which counts as 0.

    `status` is "missing" without a text or an output in the file; "unanswered" before the model is called;
    "refused" or "error" if the model gave no output; "unparsed" if the metric gave no score.
    """

    query_id: str
    doc_id: str
    status: str
    reason: str


#: (query_id, doc_id) -> text to label, or the reason for none; has every ranked document.
LabelTexts = Mapping[tuple[str, str], str | Unlabelled]


class Labelled(NamedTuple):
    """The labels of all ranked documents.

    Attributes:
        labels: query_id -> doc_id -> label 0..1; both sorted.
        unlabelled: the documents without a label.
        empty: number of empty outputs, which the metric labels, too.
    """

    labels: Mapping[str, Mapping[str, float]]
    unlabelled: tuple[Unlabelled, ...] = ()
    empty: int = 0


def label_texts(
    texts: LabelTexts, golds: Mapping[str, Gold], label: Callable[[str, Gold], float | Unread]
) -> Labelled:
    """Label each text by its query's gold outputs."""
    labels: dict[str, dict[str, float]] = {}
    unlabelled = []
    for (query_id, doc_id), text in texts.items():
        if isinstance(text, str):
            value = label(text, golds[query_id])
            if not isinstance(value, Unread):
                labels.setdefault(query_id, {})[doc_id] = value
                continue
            text = Unlabelled(query_id, doc_id, "unparsed", value.reason)
        unlabelled.append(text)
    empty = sum(isinstance(text, str) and not text.strip() for text in texts.values())
    return Labelled(labels, tuple(unlabelled), empty)


def stored_outputs(track: GradedTrack, pairs: Pairs) -> LabelTexts:
    """Return the outputs in the track's store; the track's pool has the ranked documents."""
    query_ids = frozenset(query_id for query_id, _ in pairs)
    rows = {(row["query_id"], row["doc_id"]): row for row in track.grade_rows(query_ids)}
    outputs: dict[tuple[str, str], str | Unlabelled] = {}
    for query_id, doc_id in pairs:
        row = rows.get((query_id, doc_id))
        if row is None:
            has_text = doc_id not in track.sheets[query_id].without_text
            why = ("unanswered", "the model did not answer yet") if has_text else NO_TEXT
        elif "cut_at" in row:
            why = "unparsed", RAISE_LIMIT
        elif row["status"] not in ("ok", "unparsed"):
            why = row["status"], row["answer"]
        else:
            outputs[query_id, doc_id] = row["answer"]
            continue
        outputs[query_id, doc_id] = Unlabelled(query_id, doc_id, *why)
    return outputs


def take_lines(
    path: Path, display_name: str, rejected: list[Rejected], take: Callable[[int, bytes], None]
) -> None:
    """Call `take` with number and content of each non-blank line; `rejected` receives rejected lines.

    Args:
        take: function that raises a ConversionError to reject a line.
    """
    for number, line in iter_filled(path):
        try:
            take(number, line)
        except ConversionError as error:
            rejected.append(Rejected(display_name, error.line, error.reason, error.lost))


def read_outputs(
    path: Path, display_name: str, query_ids: Collection[str], pairs: Pairs, rejected: list[Rejected]
) -> LabelTexts:
    """Read the outputs of a JSON Lines file with `{"query_id", "doc_id", "output"}` per line.

    Args:
        query_ids: the queries with gold outputs.
        rejected: receives the lines that are rejected.
    """
    outputs: dict[tuple[str, str], str | Unlabelled] = {
        pair: Unlabelled(*pair, "missing", "no output in the file") for pair in pairs
    }
    lines: dict[tuple[str, str], int] = {}

    def take(number: int, line: bytes) -> None:
        row = parse_object(path, number, line)
        query_id = an_id(path, number, row, ("query_id",))
        doc_id = an_id(path, number, row, ("doc_id", "docid"))
        pair, where = (query_id, doc_id), f"document '{doc_id}' of query '{query_id}'"
        if not isinstance(row.get("output"), str):
            what = "not text" if "output" in row else "missing"
            reason = f"the output to query '{query_id}' from '{doc_id}' is {what}"
        elif query_id not in query_ids:
            reason = f"query '{query_id}' has no gold outputs, or is not in the track"
        elif pair not in outputs:
            reason = f"{where} is in no run"
        elif pair in lines:
            reason = f"{where} has an output already (line {lines[pair]}); the first one counts"
        else:
            outputs[pair], lines[pair] = row["output"], number
            return
        raise ConversionError(path, number, reason)

    take_lines(path, display_name, rejected, take)
    return outputs
