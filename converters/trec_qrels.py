"""TREC qrels: `query_id 0 doc_id label`; in diversity qrels (ndeval) the second column is the subtopic."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Protocol

from converters.errors import ConversionError
from converters.fields import column, counted
from converters.lines import Head, columns_of, decode, iter_lines
from converters.records import Qrel
from converters.registry import Format


class Judgment(Protocol):
    """What a written row must have; both `converters.Qrel` and `ir_measures.Qrel` do."""

    @property
    def query_id(self) -> str: ...
    @property
    def doc_id(self) -> str: ...
    @property
    def relevance(self) -> int: ...
    @property
    def iteration(self) -> str: ...


EXAMPLE = "q1 0 doc42 3"


def read_qrels(path: str | os.PathLike[str]) -> Iterator[Qrel]:
    """The judgments of a qrels file, in its order. Blank lines are skipped.

    Raises:
        ConversionError: with the line: not four columns, a label that is no whole number, the same
            document judged twice for a query (and subtopic), an empty file.
    """
    seen: dict[tuple[str, str, str], int] = {}
    for number, line in iter_lines(path):
        decode(path, number, line)
        columns = [value.decode() for value in columns_of(path, number, line)]
        if not columns:
            continue
        if len(columns) != 4:
            raise ConversionError(
                path,
                number,
                f"has {counted(columns)}, a qrels line has 4: query_id 0 doc_id label",
            )
        query_id, iteration, doc_id, text = columns
        label = _label(text)
        if label is None:
            raise ConversionError(path, number, f"the label (column 4) is no whole number: '{text[:40]}'")
        first = seen.setdefault((query_id, iteration, doc_id), number)
        if first != number:
            raise ConversionError(
                path,
                number,
                f"document '{doc_id}' is judged twice for query '{query_id}' (first on line {first}); "
                "keep one",
            )
        yield Qrel(query_id, doc_id, label, iteration)
    if not seen:
        raise ConversionError(path, None, "no judgments: the file is empty")


def write_qrels(qrels: Iterable[Judgment], file: BinaryIO) -> None:
    """Writes judgments sorted by query, subtopic (as a number where it is one) and document; one space.

    Raises:
        ValueError: an id has white space in it, or a document stands twice.
    """
    rows = sorted(qrels, key=_order)
    last = None
    for row in rows:
        query_id, doc_id = column(row.query_id, "query id"), column(row.doc_id, "document id")
        key = row.query_id, row.iteration, row.doc_id
        if key == last:
            raise ValueError(f"document '{doc_id}' stands twice for query '{query_id}'")
        last = key
        file.write(f"{query_id} {column(row.iteration, 'subtopic')} {doc_id} {row.relevance}\n".encode())


def _order(row: Judgment) -> tuple[str, int, str, str]:
    number = int(row.iteration) if row.iteration.isascii() and row.iteration.isdigit() else -1
    return row.query_id, number, row.iteration, row.doc_id


def _label(text: str) -> int | None:
    if "_" in text or not text.isascii() or len(text) > 9:
        return None
    try:
        return int(text)
    except ValueError:
        return None


def _sniff(start: Head) -> bool:
    # A query of three words after its tab has four columns too.
    line = start.lines[0]
    return len(line.split()) == 4 and line.count(b"\t") != 1 and not line.lstrip().startswith((b"{", b"["))


FORMAT = Format("qrels", (".qrels", ".txt"), "TREC qrels", EXAMPLE, _sniff, read_qrels, write_qrels)
