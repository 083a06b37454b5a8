"""Writes queries, test banks, passages and judgments from Python to a track's files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from converters.bank import write_bank
from converters.records import Item, Qrel
from converters.trec_qrels import write_qrels
from trecexam.errors import TrecexamError
from trecexam.extensions.evaluate.columns import (
    DOC_ID,
    QUERY_ID,
    Fields,
    columns_of,
    ids,
    is_path,
    rows_of,
    whole_number,
)

_TEXTS: Mapping[str, Fields] = {
    "queries": {"query_id": QUERY_ID, "text": ("text", "query", "title")},
    "passages": {"docid": (*DOC_ID, "id"), "text": ("text", "contents", "segment")},
}
_QRELS = {
    "query_id": QUERY_ID,
    "doc_id": DOC_ID,
    "relevance": ("relevance", "label"),
    "iteration": ("iteration",),
}


def texts_file(data: Any, what: str, folder: Path) -> Path:
    """Return the file of queries or passages; write the file if texts are given as content.

    Args:
        data: a file, a dict id -> text, or a data frame or records with an id and a text.
        what: "queries" or "passages".

    Raises:
        TrecexamError: the data has another shape.
    """
    if is_path(data):
        return Path(data)
    fields = _TEXTS[what]
    if isinstance(data, Mapping):
        first = next(iter(fields))
        data = [{first: key, "text": text} for key, text in data.items()]
    keys, texts = columns_of(data, fields, what).values()
    rows = zip(ids(keys, what), texts, strict=True)
    return _lines(folder / f"{what}.jsonl", [dict(zip(fields, row, strict=True)) for row in rows])


def qrels_file(data: Any, folder: Path) -> Path:
    """The file of official judgments; written if they are given as content.

    Args:
        data: a file, a dict query_id -> doc_id -> label, or a data frame or records (`ir_measures.Qrel`) with
            `query_id` (`qid`), `doc_id` (`docno`) and `relevance` (`label`).

    Raises:
        TrecexamError: it is none of these.
    """
    if is_path(data):
        return Path(data)
    what = "official"
    if isinstance(data, Mapping):
        if not all(isinstance(labels, Mapping) for labels in data.values()):
            raise TrecexamError(f"{what}: a dict must be query_id -> doc_id -> label")
        data = [
            {"query_id": query_id, "doc_id": doc_id, "relevance": label}
            for query_id, labels in data.items()
            for doc_id, label in labels.items()
        ]
    columns = columns_of(data, _QRELS, what, optional=("iteration",))
    query_ids, doc_ids = ids(columns["query_id"], what), ids(columns["doc_id"], what)
    labels = [
        whole_number(label, f"{what}: the label of '{doc_id}' for query '{query_id}'")
        for query_id, doc_id, label in zip(query_ids, doc_ids, columns["relevance"], strict=True)
    ]
    iterations = map(str, columns.get("iteration", ["0"] * len(labels)))
    buffer = io.BytesIO()
    try:
        write_qrels(map(Qrel, query_ids, doc_ids, labels, iterations), buffer)
    except ValueError as error:
        raise TrecexamError(f"{what}: {error}") from None
    return _written(folder / "qrels.txt", buffer.getvalue())


def bank_files(data: Any, folder: Path) -> Sequence[Path]:
    """The files of the test bank; written if it is given as content.

    Args:
        data: a file or several, `converters.records.Item`s, a dict query_id -> questions, each a text or a
            dict as an item of a bank's line; or rows as a bank's lines are: `query_id`, `question` or
            `nugget`, and what else there may be (`question_id`, `gold_answers`, `importance` ...), also as a
            data frame, or rows of an item's fields, `query_id`, `item_id` and `text`.

    Raises:
        TrecexamError: it is none of these.
    """
    if is_path(data):
        return [Path(data)]
    if isinstance(data, Mapping):
        rows = [_of_query(query_id, items) for query_id, items in data.items()]
        return [_lines(folder / "bank.jsonl", rows)]
    if isinstance(data, Iterable) and not hasattr(data, "__arrow_c_stream__"):
        data = list(data)
        if data and all(map(is_path, data)):
            return [Path(path) for path in data]
        if data and all(isinstance(item, Item) for item in data):
            buffer = io.BytesIO()
            try:
                write_bank(data, buffer)
            except ValueError as error:
                raise TrecexamError(f"bank: {error}") from None
            return [_written(folder / "bank.jsonl", buffer.getvalue())]
    return [_lines(folder / "bank.jsonl", [_bank_line(row) for row in rows_of(data, "bank")])]


def grades_file(data: Any, folder: Path) -> Path:
    """The file of recorded grades; accepts a file, or rows like those of `Track.grades`."""
    return Path(data) if is_path(data) else _lines(folder / "recorded.jsonl", rows_of(data, "recorded"))


def _of_query(query_id: Any, items: Any) -> dict[str, Any]:
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise TrecexamError(f"bank: a dict must be query_id -> list of questions; see query {query_id!r}")
    questions = [{"question_text": item} if isinstance(item, str) else item for item in items]
    return {"query_id": ids([query_id], "bank")[0], "items": questions}


def _bank_line(row: dict[str, Any]) -> dict[str, Any]:
    """A line of a bank in the form that its reader expects."""
    if "query_id" not in row and "qid" in row:
        # In older banks `qid` is a question's.
        row = {("query_id" if name == "qid" else name): value for name, value in row.items()}
    if "item_id" in row and "text" in row:
        kind = row.get("kind") or "question"
        field_names = {"item_id": f"{kind}_id", "text": kind}
        return {field_names.get(name, name): value for name, value in row.items() if name != "kind"}
    return row


def _lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    try:
        content = b"".join(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n" for row in rows)
    except TypeError as error:
        raise TrecexamError(f"{path.stem}: {error}") from None
    if not content:
        raise TrecexamError(f"{path.stem}: no rows")
    return _written(path, content)


def _written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path
