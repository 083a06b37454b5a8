"""Conversion of queries, test banks, passages and judgments from Python to a track's files.

Each function passes files through, and raises a TrecexamError for content of an unsupported shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from converters.records import Qrel
from converters.trec_qrels import write_qrels
from trecexam.errors import TrecexamError
from trecexam.extensions.evaluate.rows import (
    FRAME,
    LabelRow,
    PassageRow,
    QueryRow,
    is_path,
    read_rows,
    rows_of,
)


def texts_file(data: Any, row_type: type[QueryRow | PassageRow], what: str, folder: Path) -> Path:
    """Return a file of queries or passages from a file, a dict id -> text, or rows."""
    if is_path(data):
        return Path(data)
    if isinstance(data, Mapping):
        data = [{"id": key, "text": text} for key, text in data.items()]
    return _lines(folder / f"{what}.jsonl", read_rows(data, row_type, what))


def qrels_file(data: Any, folder: Path) -> Path:
    """Return a file of judgments from a file, a dict query_id -> doc_id -> label, or rows."""
    if is_path(data):
        return Path(data)
    rows, path = read_rows(data, LabelRow, "official"), folder / "qrels.txt"
    try:
        with path.open("wb") as file:
            write_qrels((Qrel(row.query_id, row.doc_id, row.label, row.iteration) for row in rows), file)
    except ValueError as error:
        raise TrecexamError(f"official: {error}") from None
    return path


def bank_files(data: Any, folder: Path) -> Sequence[Path]:
    """Return the files of the test bank; write one if the bank is given as content.

    Args:
        data: one or more files; a dict query_id -> questions, each a text or a dict like an item of a bank's
            line; or a data frame or rows like a bank's lines: `query_id`, `question` or `nugget`, and
            optional fields (`question_id`, `gold_answers`, `importance` ...), or with an item's fields
            `query_id`, `item_id` and `text`, as in `converters.records.Item`.
    """
    if is_path(data):
        return [Path(data)]
    if isinstance(data, Mapping):
        data = [row for query_id, items in data.items() for row in _of_query(query_id, items)]
    if isinstance(data, Iterable) and not hasattr(data, FRAME):
        data = list(data)
        if data and all(map(is_path, data)):
            return [Path(path) for path in data]
    return [_lines(folder / "bank.jsonl", [_bank_line(row) for row in rows_of(data, "bank")])]


def grades_file(data: Any, folder: Path) -> Path:
    """Return a file of recorded grades from a file or rows as from `Track.grades`."""
    return Path(data) if is_path(data) else _lines(folder / "recorded.jsonl", rows_of(data, "recorded"))


def _of_query(query_id: Any, items: Any) -> list[dict[str, Any]]:
    """Return the rows of a query's items."""
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise TrecexamError(f"bank: a dict must be query_id -> list of questions; see query {query_id!r}")
    texts = (item if isinstance(item, Mapping) else {"question": item} for item in items)
    return [{"query_id": query_id, **text} for text in texts]


def _bank_line(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as a bank line in the form that the bank's reader expects."""
    names = {}
    if "query_id" not in row:
        # In older banks, `qid` is the question's id.
        names["qid"] = "query_id"
    if "item_id" in row and "text" in row:
        kind = row.pop("kind", "") or "question"
        names |= {"item_id": f"{kind}_id", "text": kind}
    return {names.get(name, name): value for name, value in row.items()}


def _lines(path: Path, rows: Iterable[object]) -> Path:
    try:
        content = b"".join(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n" for row in rows)
    except TypeError as error:
        raise TrecexamError(f"{path.stem}: {error}") from None
    if not content:
        raise TrecexamError(f"{path.stem}: no rows")
    path.write_bytes(content)
    return path
