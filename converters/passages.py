"""Passages: JSON with an id and a text, tables (DPR's), or MS MARCO's TSV without a header.

A title goes before the text, as ir_datasets has it. Runs with texts are read, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from converters.errors import BadLines, ConversionError
from converters.fields import TEXT_KEYS, a_passage, an_id
from converters.lines import (
    Head,
    decode,
    head,
    head_object,
    is_json_document,
    iter_filled,
    iter_objects,
    parse_object,
)
from converters.records import Passage
from converters.registry import Format
from converters.scored_rows import has_texts, header, scored_rows, table_row

EXAMPLE = '{"docid": "doc42", "text": "Heat pumps move heat ..."}'
#: A segment of MS MARCO v2 has its document's id as `docid`, and its own as `pid`.
ID_KEYS = ("pid", "docid", "doc_id", "docno", "id", "_id")
#: MS MARCO's documents, a TSV without a header.
_DOCUMENT_COLUMNS = ("docid", "url", "title", "body")
#: Names of files of texts that could be queries or passages, and of how many words these are on average.
_QUERIES, _PASSAGES, _WORDS = ("quer", "topic"), ("corpus", "collection", "passages", "documents"), 40


def read_passages(path: str | os.PathLike[str]) -> Iterator[Passage]:
    """Yields the passages of a file, in order; see `numbered_passages`."""
    return (passage for _, passage in numbered_passages(path))


def numbered_passages(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[tuple[int, Passage]]:
    """Yields the passages of a file with their line numbers.

    Args:
        on_error: takes the error of a bad line, which is then left out; None raises it.

    Raises:
        ConversionError: with the line: bad JSON, no id, no text; a damaged or empty file in any case.
    """
    start = head(path)
    if has_texts(start):
        yield from _of_rows(path, on_error)
        return
    columns, is_named = _columns(start)
    lines: Iterator[tuple[int, Any]] = iter_objects(path) if is_json_document(start) else iter_filled(path)
    if is_named:
        next(lines)
    for number, line in lines:
        passage = None if columns else _plain(line)
        try:
            if passage is None:
                row = line if isinstance(line, dict) else _row(path, number, line, columns, quoted=is_named)
                doc_id = an_id(path, number, row, ID_KEYS).strip()
                passage = Passage(doc_id, a_passage(path, number, row, f"passage '{doc_id}'"))
        except ConversionError as error:
            if on_error is None:
                raise
            on_error(error)
            continue
        yield number, passage


def _of_rows(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None
) -> Iterator[tuple[int, Passage]]:
    """Yield the passages of a run with texts, each text of a passage once."""
    seen: set[Passage] = set()
    with BadLines() as bad:
        for row in scored_rows(path, on_error or bad.add):
            passage = Passage(row.doc_id, row.text)
            if row.text and passage not in seen:
                seen.add(passage)
                yield row.line, passage


def _columns(start: Head) -> tuple[tuple[str, ...], bool]:
    """Return the columns of a table, and whether its first line names them; () for JSON."""
    if start.lines[0].lstrip().startswith((b"{", b"[")) or not (b"\t" in start.lines[0] or header(start)):
        return (), False
    names = tuple(name.strip().lower() for name in start.lines[0].decode(errors="replace").split("\t"))
    if header(start) or (len(names) == 2 and {names[0]} <= set(ID_KEYS) and {names[1]} <= set(TEXT_KEYS)):
        return header(start) or names, True
    return (_DOCUMENT_COLUMNS if len(names) == len(_DOCUMENT_COLUMNS) else ("docid", "text")), False


def _plain(line: bytes | dict[str, Any]) -> Passage | None:
    """Return the passage of nearly all lines of nearly all files; None where one has to look closely."""
    import orjson

    try:
        row = orjson.loads(line) if isinstance(line, bytes) else line
        doc_id, text = row["docid"], row["text"]
        plain = row.keys().isdisjoint(("pid", "title", "headings")) and doc_id.strip() and text.strip()
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    return Passage(doc_id, text) if plain else None


def _row(
    path: str | os.PathLike[str], number: int, line: bytes, columns: tuple[str, ...], *, quoted: bool
) -> Mapping[str, Any]:
    if quoted:
        return table_row(path, number, line, columns)
    if not columns:
        return parse_object(path, number, line)
    fields = decode(path, number, line).split("\t")
    if len(fields) != len(columns):
        raise ConversionError(path, number, f"has {len(fields) - 1} tabs: a line is `doc_id<TAB>text`")
    return dict(zip(columns, map(str.strip, fields), strict=True))


def named_as(name: str) -> str:
    """ "queries" or "passages" if the file's name says so, else ""."""
    name = name.lower()
    if any(word in name for word in _QUERIES):
        return "queries"
    return "passages" if any(word in name for word in _PASSAGES) else ""


def write_passages(passages: Iterable[Passage], file: BinaryIO) -> None:
    """Writes `{"docid", "text"}` lines."""
    import orjson

    for passage in passages:
        file.write(orjson.dumps({"docid": passage.doc_id, "text": passage.text}) + b"\n")


def _sniff(start: Head) -> bool:
    columns, is_named = _columns(start)
    if columns:
        line = start.lines[0].lstrip()
        if is_named:
            return len(columns) > 2 and not set(columns).isdisjoint(TEXT_KEYS)
        if columns == _DOCUMENT_COLUMNS:
            addresses = [line.split(b"\t")[1] for line in start.lines if line.count(b"\t") == 3]
            return any(addresses) and all(b"://" in address or not address for address in addresses)
        return named_as(start.name) == "passages" and line.count(b"\t") == 1 and line[:1] != b"<"
    row = head_object(start) or {}
    if "_id" in row and "text" in row:
        is_long = sum(len(line.split()) for line in start.lines) > _WORDS * len(start.lines)
        return "title" in row or named_as(start.name) == "passages" or is_long
    if row.keys().isdisjoint(ID_KEYS):
        return False
    if not row.keys().isdisjoint(("pid", "docid", "doc_id", "docno", "contents", "segment")):
        return not row.keys().isdisjoint(TEXT_KEYS)
    # {"id", "text"} may be either; people name query files so. A list of them is topics.
    of_queries = named_as(start.name) == "queries" or "query_id" in row or "qid" in row
    return "text" in row and not of_queries and not is_json_document(start)


FORMAT = Format(
    "passages",
    (".jsonl", ".tsv"),
    "passages: JSON, DPR's and MS MARCO's TSV; the title goes before the text",
    EXAMPLE,
    _sniff,
    read_passages,
    write_passages,
    told_by='"docid", "docno", "pid" or "id" and "text", "contents", "segment", "passage" or "body"; "_id" '
    'with a "title" or long texts; TSV with such a header, with addresses, or named collection or corpus',
)
