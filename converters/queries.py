"""Queries: TSV `query_id<TAB>text`, JSON Lines, one JSON document, or TREC's topics in SGML and XML.

What the text of a JSON topic with several fields is, `converters.topics` says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from converters.errors import BadLines, ConversionError
from converters.fields import an_id
from converters.lines import Head, decode, first_object, head, iter_lines, iter_objects
from converters.measure_values import looks_like_values
from converters.records import Query
from converters.registry import Format
from converters.scored_rows import has_texts, scored_rows
from converters.topics import (
    ID_KEYS,
    TEXT_KEYS,
    dialect,
    has_turns,
    is_document,
    json_topics,
    looks_like_topics,
    sgml_topics,
    topic_text,
    turns_of,
    xml_topics,
)

EXAMPLE = "q1<TAB>how do heat pumps work"
_HEADER_IDS = {"query_id", "qid", "id", "topic", "topic_id", "number"}
_HEADER_TEXTS = {"text", "query", "title", "query_text", "topic", "question"}


def read_queries(path: str | os.PathLike[str]) -> Iterator[Query]:
    """Reads queries in file order; ids keep leading zeros. A TSV header line is skipped.

    Raises:
        ConversionError: with the line: no tab, no text, the same id twice, bad JSON, bad XML, an empty file.
    """
    seen: dict[str, int] = {}
    for number, query in _reader(head(path))(path):
        first = seen.setdefault(query.query_id, number)
        if first != number:
            raise ConversionError(
                path, number, f"query '{query.query_id}' occurs twice (first on line {first})"
            )
        yield query
    if not seen:
        raise ConversionError(path, None, "no queries in it")


def write_queries(queries: Iterable[Query], file: BinaryIO) -> None:
    """Writes TSV; tabs and line ends in a text become spaces.

    Raises:
        ValueError: an id has a tab or a line end in it, or is empty.
    """
    for index, query in enumerate(queries):
        if index == 0 and (
            _is_header(query.query_id, query.text) or query.query_id.lstrip().startswith(("{", "[", "<"))
        ):
            # A first query that reads as a header line would be skipped as one, or taken for another dialect.
            file.write(b"query_id\ttext\n")
        if not query.query_id.strip() or any(c in query.query_id for c in "\t\r\n"):
            raise ValueError(f"query id {query.query_id!r} cannot be in a TSV file")
        file.write(f"{query.query_id}\t{' '.join(query.text.split())}\n".encode())


def _reader(start: Head) -> Callable[[str | os.PathLike[str]], Iterator[tuple[int, Query]]]:
    if has_texts(start):
        return _of_rows
    if is_document(start):
        return json_topics
    if start.lines[0].lstrip().startswith(b"{"):
        return _json_rows
    marked_up = dialect(start)
    if marked_up is None or (marked_up == "other" and b"\t" in start.lines[0]):
        return _tsv_rows
    return sgml_topics if marked_up == "sgml" else xml_topics


def _of_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, Query]]:
    """Yield the queries of a run with texts."""
    with BadLines() as bad:
        rows = {row.query_id: row for row in scored_rows(path, bad.add) if row.query_text}
    yield from ((row.line, Query(row.query_id, row.query_text)) for row in rows.values())


def _is_header(query_id: str, text: str) -> bool:
    return query_id.strip().lower() in _HEADER_IDS and text.strip().lower() in _HEADER_TEXTS


def _tsv_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, Query]]:
    with BadLines() as bad:
        for number, line in iter_lines(path):
            try:
                query = _tsv_row(path, number, line)
            except ConversionError as error:
                bad.add(error)
                continue
            if query is not None and not bad:
                yield number, query


def _tsv_row(path: str | os.PathLike[str], number: int, line: bytes) -> Query | None:
    """The query of a line; None for a blank line or a header."""
    text = decode(path, number, line)
    if not text.strip():
        return None
    query_id, tab, query = text.partition("\t")
    if number == 1 and _is_header(query_id, query):
        return None
    if not tab:
        raise ConversionError(path, number, "no tab: a line is `query_id<TAB>text`")
    if not query_id.strip():
        raise ConversionError(path, number, "no query id before the tab")
    if not query.strip():
        raise ConversionError(path, number, f"query '{query_id}' has no text")
    return Query(query_id.strip(), query.strip())


def _json_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, Query]]:
    for number, row in iter_objects(path):
        if has_turns(row):
            yield from ((number, query) for query in turns_of(path, number, row))
            continue
        query_id = an_id(path, number, row, ID_KEYS)
        if "_id" in row and "title" in row and "text" in row:
            reason = "looks like BEIR's corpus.jsonl, not its queries: it has a title; give it as passages"
            raise ConversionError(path, number, reason)
        yield number, Query(query_id, topic_text(path, number, row, query_id, TEXT_KEYS))


def _sniff(start: Head) -> bool:
    if is_document(start):
        return looks_like_topics(start)
    row = first_object(start)
    if row is not None:
        return has_turns(row) or not (row.keys().isdisjoint(ID_KEYS) or row.keys().isdisjoint(TEXT_KEYS))
    marked_up = dialect(start)
    if marked_up in ("sgml", "xml"):
        return True
    if b"\t" not in start.lines[0] or start.lines[0].lstrip().startswith((b"{", b"[")):
        return False
    # Tables of our own: leaderboards, people's ratings.
    own = start.lines[0].startswith((b"run\t", b"query_id\tdoc_id\t"))
    return not own and not looks_like_values(start)


FORMAT = Format(
    "queries",
    (".tsv", ".jsonl", ".json", ".xml", ".txt"),
    "queries: TSV, JSONL (also BEIR's), JSON, TREC topics",
    EXAMPLE,
    _sniff,
    read_queries,
    write_queries,
    told_by="an id and a text, not a passage's; `<top>` or `<topic>`; a tab; else the name",
    written_as="TSV",
)
