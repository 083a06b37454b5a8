"""Passages: JSON Lines with an id and a text, or MS MARCO's TSV `doc_id<TAB>text`.

A title is not put before the text, but in BEIR's corpora (`_id`, `title`, `text`), as BEIR does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from converters.errors import ConversionError
from converters.fields import a_text, an_id
from converters.lines import Head, decode, first_object, head, iter_filled, parse_object
from converters.records import Passage
from converters.registry import Format

EXAMPLE = '{"docid": "doc42", "text": "Heat pumps move heat ..."}'
ID_KEYS = ("docid", "doc_id", "id", "_id")
TEXT_KEYS = ("text", "contents", "segment")
_TSV_IDS, _TSV_TEXTS = {"id", "pid", "docid", "doc_id"}, {"text", "passage", "contents"}
#: Names of files of texts that could be queries or passages, and of how many words these are on average.
_QUERIES, _PASSAGES, _WORDS = ("quer", "topic"), ("corpus", "collection", "passages", "documents"), 40


def read_passages(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[Passage]:
    """Yields the passages of a file, in order.

    Args:
        on_error: takes the error of a bad line, which is then left out; None raises it.

    Raises:
        ConversionError: with the line: bad JSON, no id, no text; a damaged or empty file in any case.
    """
    return (passage for _, passage in numbered_passages(path, on_error))


def numbered_passages(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[tuple[int, Passage]]:
    """Yields the passages of a file with their line numbers."""
    import orjson

    first = head(path).lines[0].lstrip()
    if b"\t" in first and not first.startswith((b"{", b"[")):
        yield from _tsv_passages(path, on_error)
        return
    for number, line in iter_filled(path):
        try:
            # Nearly all lines of nearly all files; what is anything else is looked at closely.
            row = orjson.loads(line)
            doc_id, text = row["docid"], row["text"]
            plain = doc_id.strip() and text.strip()
        except (ValueError, LookupError, TypeError, AttributeError):
            plain = False
        if plain:
            yield number, Passage(doc_id, text)
            continue
        try:
            row = parse_object(path, number, line)
            doc_id = an_id(path, number, row, ID_KEYS)
            if "_id" in row and isinstance(row.get("title"), str):
                row = {**row, "text": f"{row['title']} {row.get('text') or ''}".strip()}
            passage = Passage(doc_id, a_text(path, number, row, TEXT_KEYS, f"passage '{doc_id}'"))
        except ConversionError as error:
            if on_error is None:
                raise
            on_error(error)
            continue
        yield number, passage


def _tsv_passages(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None
) -> Iterator[tuple[int, Passage]]:
    for number, line in iter_filled(path):
        try:
            doc_id, *texts = decode(path, number, line).split("\t")
            if len(texts) != 1:
                raise ConversionError(path, number, f"has {len(texts)} tabs: a line is `doc_id<TAB>text`")
            if not doc_id.strip() or not texts[0].strip():
                raise ConversionError(path, number, f"passage '{doc_id}' has no text, or no id")
        except ConversionError as error:
            if on_error is None:
                raise
            on_error(error)
            continue
        if number > 1 or doc_id.strip().lower() not in _TSV_IDS or texts[0].strip().lower() not in _TSV_TEXTS:
            yield number, Passage(doc_id.strip(), texts[0].strip())


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
    row = first_object(start)
    if row is None:
        line = start.lines[0].lstrip()
        return named_as(start.name) == "passages" and line.count(b"\t") == 1 and line[:1] not in b"{[<"
    if "_id" in row and "text" in row:
        return "title" in row or named_as(start.name) == "passages" or _is_long(start)
    if not any(key in row for key in ID_KEYS):
        return False
    if any(key in row for key in ("docid", "doc_id", "contents", "segment")):
        return any(key in row for key in TEXT_KEYS)
    # {"id", "text"} may be either; people name query files so.
    return "text" in row and named_as(start.name) != "queries" and "query_id" not in row and "qid" not in row


def _is_long(start: Head) -> bool:
    """Whether lines are longer than queries on average."""
    return sum(len(line.split()) for line in start.lines) > _WORDS * len(start.lines)


FORMAT = Format(
    "passages",
    (".jsonl", ".tsv"),
    "passages: JSONL, BEIR's corpus (the title goes before the text), MS MARCO's TSV",
    EXAMPLE,
    _sniff,
    read_passages,
    write_passages,
    told_by='"docid" or "id" and "text"; "_id" with a "title" or long texts; TSV named collection or corpus',
    written_as="JSONL",
)
