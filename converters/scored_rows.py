"""Runs and qrels as JSON or as tables with a header: rows of a query, a document, and a score or label.

| whose | form |
|---|---|
| castorini (rank_llm, Anserini) | `{"query": {"qid", "text"}, "candidates": [{"docid", "score", "doc"}]}` |
| TIREx; tables of PyTerrier, ir_measures | a row a document: columns of `_QUERY_IDS`, `_DOC_IDS` ... |
| ranx, BEIR, MTEB | `{query_id: {doc_id: number}}`, MTEB's runs inside of `{subset: {split: ...}}` |
| TREC CAR Y3 | `{"squid", "run_id", "paragraphs": [{"para_id", "para_body"}]}`, best first |

A table is CSV, TSV or parquet. Objects are on a line each, or in one list.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from converters.errors import ConversionError
from converters.fields import a_passage, an_id, column
from converters.lines import (
    Head,
    decode,
    head,
    head_object,
    iter_filled,
    iter_objects,
    json_values,
    read_document,
)
from converters.unpacking import without_ending

_QUERY_IDS = ("qid", "query_id", "query-id", "topic_id", "topic", "query")
#: PyTerrier's `docid` is a number of its index, and `docno` the id.
_DOC_IDS = ("docno", "docid", "doc_id", "corpus-id", "corpus_id", "pid", "did", "document_id")
_LABELS = ("relevance", "label", "rel", "grade")
_TAGS = ("tag", "run", "run_id", "name", "system")
#: Rows with these are something else: grades, judged texts, answers, citations.
_OTHERS = frozenset(("item_id", "judgment", "answer", "citation", "rating"))
_MTEB = "mteb_model_meta"
#: {query: {doc: number}}; of the first queries there may be no document.
_NESTED = re.compile(
    rb'\{\s*(?:"(?:[^"\\]|\\.)*+"\s*:\s*\{\s*\}\s*,\s*)*+'
    rb'"(?:[^"\\]|\\.)*+"\s*:\s*\{\s*"(?:[^"\\]|\\.)*+"\s*:\s*-?[0-9]'
)
_NUMBER = re.compile(rb'":\s*"?(-?[0-9][0-9.eE+-]*)')
_SCORE = re.compile(rb'"score"\s*:\s*"?(-?[0-9][0-9.eE+-]*)')
_WHOLE = re.compile(rb"-?[0-9]+(?:\.0*)?")
#: Words of a file's name that tell runs from judgments, where the numbers may be either.
_NAMES: Mapping[str, Kind] = {
    **dict.fromkeys(("qrel", "qrels", "judgments", "labels", "gold", "truth"), "qrels"),
    **dict.fromkeys(("run", "runs", "result", "results", "prediction", "predictions"), "run"),
}
#: Whole numbers above this are scores, not labels.
_HIGHEST_LABEL = 10
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_COLUMN = re.compile(r"[a-z_][a-z0-9_-]*")
Source = str | os.PathLike[str]
Kind = Literal["run", "qrels", ""]


class ScoredRow(NamedTuple):
    """A document of a query. `value` is its score or label as the file has it; texts are "" if missing."""

    line: int
    query_id: str
    doc_id: str
    value: Any
    tag: str
    query_text: str = ""
    text: str = ""


def rows_of(start: Head) -> Kind:
    """Return what a file in one of these forms holds, judged by its beginning; "" for other files."""
    text = b"\n".join(start.lines)
    if _NESTED.match(text):
        return _numbers_are(_NUMBER.findall(text), start.name)
    row = _first_row(start)
    if _MTEB in row or {"query", "candidates"} <= row.keys() or {"squid", "paragraphs"} <= row.keys():
        return "run"
    if not _key(row, _QUERY_IDS) or not _key(row, _DOC_IDS) or row.keys() & _OTHERS:
        return ""
    with_text = "text" in row or ("query" in row and _key(row, _QUERY_IDS) != "query")
    if "rank" in row or ("score" in row and (_key(row, _TAGS) or with_text)):
        return "run"
    if "score" not in row:
        return "qrels" if _key(row, _LABELS) else ""
    columns = header(start)
    place = columns.index("score") if columns else 0
    rows = [_fields(line.decode(errors="replace")) for line in start.lines[1:]] if columns else []
    scores = [fields[place].encode() for fields in rows if len(fields) == len(columns)]
    return _numbers_are(scores or _SCORE.findall(text), start.name)


def _numbers_are(numbers: Sequence[bytes], name: str) -> Kind:
    """Return whether numbers are scores of a run, or labels: whole, and not high. Names have precedence."""
    named = [_NAMES[word] for word in re.findall("[a-z]+", name.lower()) if word in _NAMES]
    if named:
        return "qrels" if "qrels" in named else "run"
    labels = all(_WHOLE.fullmatch(each) and float(each) <= _HIGHEST_LABEL for each in numbers)
    return "qrels" if labels else "run"


def is_ambiguous(start: Head) -> bool:
    """Return True where numbers alone tell what the file holds; in a folder of runs it is a run."""
    return bool(_NESTED.match(b"\n".join(start.lines)))


def in_rows(path: Source) -> bool:
    """Return True for a file in one of these forms; False for one that cannot be read."""
    try:
        return bool(rows_of(head(path)))
    except ConversionError:
        return False


def has_texts(start: Head) -> bool:
    """Return True where a file in one of these forms has the texts of its queries and passages."""
    row = _first_row(start)
    has = "candidates" in row or "paragraphs" in row or {"query", "text"} <= row.keys()
    return has and rows_of(start) == "run"


def _first_row(start: Head) -> Mapping[str, Any]:
    columns = header(start)
    return dict.fromkeys(columns) if columns else head_object(start) or {}


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((key for key in keys if key in row), "")


def header(start: Head) -> tuple[str, ...]:
    """Return the columns that the first line of a table names, in small letters; () if it names none."""
    names = tuple(name.strip().lower() for name in _fields(start.lines[0].decode(errors="replace")))
    # pandas writes its index as a first column without a name.
    if len(names) < 3 or not all(map(_COLUMN.fullmatch, names[not names[0] :])):
        return ()
    return names if _key(dict.fromkeys(names), (*_DOC_IDS, "id")) else ()


def _fields(line: str) -> list[str]:
    """Return the fields of a table's line; whole ones in quotes, as CSV has them, without these."""
    if "\t" in line:
        fields = line.split("\t")
        return [each[1:-1].replace('""', '"') if _QUOTED.fullmatch(each) else each for each in fields]
    try:
        return next(csv.reader([line])) if "," in line else line.split()
    except csv.Error:
        return [line]


def table_row(path: Source, number: int, line: bytes, columns: Sequence[str]) -> dict[str, str]:
    """Return the row on a line of a table whose header names these columns.

    Raises:
        ConversionError: it has more fields, or fewer; not UTF-8.
    """
    fields = _fields(decode(path, number, line))
    if len(fields) != len(columns):
        reason = f"has {len(fields)} fields, and the header names {len(columns)}: {', '.join(columns)}"
        raise ConversionError(path, number, reason)
    return dict(zip(columns, fields, strict=True))


def scored_rows(path: Source, on_error: Callable[[ConversionError], None]) -> Iterator[ScoredRow]:
    """Yield the rows of a file of which `rows_of` knows what it holds.

    Args:
        on_error: takes the errors of rows that cannot be read.

    Raises:
        ConversionError: the file cannot be read.
    """
    start = head(path)
    tag = tag_of(path)
    if _NESTED.match(b"\n".join(start.lines)) or _MTEB in (head_object(start) or {}):
        yield from _nested(path, tag)
        return
    columns = header(start)
    for number, row in itertools.islice(iter_filled(path), 1, None) if columns else iter_objects(path):
        try:
            fields = row if isinstance(row, dict) else table_row(path, number, row, columns)
            yield from _rows(path, number, fields, tag)
        except ConversionError as error:
            on_error(error)


def tag_of(path: Source) -> str:
    """Return the name of a run whose file has none: the file's."""
    return "_".join(without_ending(Path(path).name).rsplit(".", 1)[0].split()) or "run"


def _nested(path: Source, tag: str) -> Iterator[ScoredRow]:
    """Yield the rows of one JSON document {query_id: {doc_id: number}}."""
    text, _ = read_document(path)
    entries = list(json_values(path, text))
    queries = [(line, key, of) for (line, key), (_, of) in zip(entries[::2], entries[1::2], strict=True)]
    if any(key == _MTEB for _, key, _ in queries):
        subsets = [(key, subset) for _, key, subset in queries if key != _MTEB]
        splits = [(f"{key}/{name}", split) for key, subset in subsets for name, split in _pairs(path, subset)]
        if len(splits) != 1:
            names = ", ".join(name for name, _ in splits)
            raise ConversionError(path, 1, f"has {len(splits)} splits ({names}): keep one", "file")
        queries = [(1, query_id, docs) for query_id, docs in _pairs(path, splits[0][1])]
    for line, query_id, docs in queries:
        for doc_id, value in _pairs(path, docs, line):
            yield _checked(path, ScoredRow(line, query_id, doc_id, value, tag))


def _pairs(path: Source, value: Any, line: int = 1) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise ConversionError(path, line, "not {query_id: {doc_id: number}}")
    yield from value.items()


def _rows(path: Source, number: int, row: Mapping[str, Any], tag: str) -> Iterator[ScoredRow]:
    if "candidates" in row:
        query = row.get("query")
        fields = query if isinstance(query, dict) else {**row, "text": query}
        query_id = an_id(path, number, fields, ("qid", "query_id", "id"))
        for place, candidate in enumerate(_objects(path, number, row, "candidates"), 1):
            document = candidate.get("doc") or {}
            texts = document if isinstance(document, dict) else {"text": document}
            fields = {**texts, **candidate, "qid": query_id, "query": _text(query)}
            yield _row(path, number, fields, tag, place)
    elif "paragraphs" in row:
        of_page = {"qid": row.get("squid"), "query": row.get("title"), "tag": row.get("run_id")}
        for place, paragraph in enumerate(_objects(path, number, row, "paragraphs"), 1):
            body = "".join(_text(part) for part in _objects(path, number, paragraph, "para_body"))
            fields = {**of_page, "docid": paragraph.get("para_id"), "text": body}
            yield _row(path, number, fields, tag, place)
    else:
        yield _row(path, number, row, tag)


def _row(path: Source, number: int, row: Mapping[str, Any], tag: str, place: int | None = None) -> ScoredRow:
    """Return the row of an object; without a score it has minus its rank, or minus its place."""
    query_id, doc_id = an_id(path, number, row, _QUERY_IDS), an_id(path, number, row, _DOC_IDS)
    value = row.get(_key(row, ("score", *_LABELS)))
    if value is None and (rank := row.get("rank", place)) is not None:
        value = f"-{rank}"
    if value is None:
        raise ConversionError(path, number, f"document '{doc_id}' has no score, no rank and no label")
    name, query = row.get(_key(row, _TAGS)), row.get("query")
    text = a_passage(path, number, row, f"passage '{doc_id}'", blank=True)
    tag = name if isinstance(name, str) and name.strip() else tag
    query = query if isinstance(query, str) else ""
    return _checked(path, ScoredRow(number, query_id, doc_id, value, tag, query, text))


def _checked(path: Source, row: ScoredRow) -> ScoredRow:
    """Refuse ids that the columns of a run or of qrels cannot hold."""
    try:
        column(row.query_id, "query id")
        column(row.doc_id, "document id")
    except ValueError as error:
        raise ConversionError(path, row.line, str(error)) from None
    return row


def _text(value: Any) -> str:
    """Return the text of {"text"}, or the value itself; "" if it is none."""
    text = value.get("text") if isinstance(value, dict) else value
    return text if isinstance(text, str) else ""


def _objects(path: Source, number: int, row: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    listed = row.get(key)
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise ConversionError(path, number, f'"{key}" is not a list of JSON objects')
    return listed
