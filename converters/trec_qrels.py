"""TREC qrels: `query_id 0 doc_id label`; in diversity qrels (ndeval) the second column is the subtopic.

TREC RAG 2025 has six columns: `query_id Q0 doc_id label confidence run_id`. BEIR has three, and a header (see
`converters.scored_rows`). Lines whose first character is `#` are comments, as in trec_eval 10.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Protocol

from converters.errors import BadLines, ConversionError
from converters.fields import (
    a_number,
    column,
    counted,
    is_comment,
    warn_of_comments,
    warn_of_skipped_comments,
    without_comments,
)
from converters.lines import Head, columns_of, decode, iter_lines, open_bytes, reading
from converters.measure_values import looks_like_values
from converters.records import Qrel
from converters.registry import Format
from converters.scored_rows import in_rows, rows_of, scored_rows

#: The first line of each (query, subtopic, document).
Seen = dict[tuple[str, str, str], int]


class QrelRow(Protocol):
    """The interface of rows to write, such as `converters.Qrel` and `ir_measures.Qrel`."""

    @property
    def query_id(self) -> str: ...
    @property
    def doc_id(self) -> str: ...
    @property
    def relevance(self) -> int: ...
    @property
    def iteration(self) -> str: ...


EXAMPLE = "q1 0 doc42 3"
#: The highest label that judgments with confidences have.
MAX_LABEL = 4
#: The highest label that is read. trec_eval clears 8 bytes a label for each query of each run: 8 MB here.
HIGHEST_LABEL = 1_000_000
#: The largest file that is read at once, in bytes: some hundred megabytes of texts.
_AT_ONCE = 16 * 1024 * 1024
#: Lines as nearly all are: white space is what it is to `bytes.split`.
_PLAIN = re.compile(r"(?:(?!#)(?:\S++[ \t]++){3}-?[0-9]{1,8}+(?:\n|$))++", re.ASCII)
#: A whole number, which tables of floats write as `1.0`.
_WHOLE = re.compile(r"([-+]?[0-9]{1,9})(?:\.0*)?", re.ASCII)
#: What `str.split` takes for white space, and `bytes.split` for a part of an id.
_SPACE_OF_UNICODE = re.compile(r"[^\S \t\n]")


def read_qrels(path: str | os.PathLike[str]) -> Iterator[Qrel]:
    """Reads judgments in file order. Blank lines are skipped, comments too, with a warning.

    Of six columns the last two, the judge's confidence and its run id, are left out, which is logged once,
    and the second, Q0, is no subtopic.

    Raises:
        ConversionError: with the line: neither four columns nor six, or not as many as on the first line, a
            label that is not a whole number or above `HIGHEST_LABEL`, the same document judged twice for a
            query (and subtopic), an empty file.
    """
    plain = _plain(path)
    if plain is not None:
        yield from plain
        return
    seen: Seen = {}
    width = n_comments = 0
    if in_rows(path):
        yield from _of_rows(path, seen)
        return
    with BadLines() as bad:
        for number, line in iter_lines(path):
            try:
                decode(path, number, line)
                columns = [value.decode() for value in columns_of(path, number, line)]
                if not columns:
                    continue
                if is_comment(line):
                    n_comments += 1
                    continue
                # MS MARCO's runs have three columns, too; BEIR's judgments have tabs.
                by_tabs = len(columns) == 3 and line.count(b"\t") == 2
                width = width or (3 if by_tabs else 6 if len(columns) == 6 else 4)
                judgment = _judgment(path, number, columns, width)
                _refuse_twice(path, number, judgment, seen)
            except ConversionError as error:
                bad.add(error)
                continue
            if not bad:
                yield judgment
    if not seen:
        why = "all lines are comments" if n_comments else "the file is empty"
        raise ConversionError(path, None, f"no judgments: {why}")
    warn_of_skipped_comments(path, n_comments)
    if width == 6:
        logging.getLogger("converters").info(
            "%s: confidences and run ids (columns 5 and 6) are left out", os.fspath(path)
        )


def _of_rows(path: str | os.PathLike[str], seen: Seen) -> Iterator[Qrel]:
    """Read qrels that are JSON, or a table with a header."""
    with BadLines() as bad:
        for row in scored_rows(path, bad.add):
            try:
                label = _read_label(path, row.line, str(row.value), f"the label of document '{row.doc_id}'")
                judgment = Qrel(row.query_id, row.doc_id, label)
                _refuse_twice(path, row.line, judgment, seen)
            except ConversionError as error:
                bad.add(error)
                continue
            if not bad:
                yield judgment


def _refuse_twice(path: str | os.PathLike[str], number: int, judgment: Qrel, seen: Seen) -> None:
    first = seen.setdefault((judgment.query_id, judgment.iteration, judgment.doc_id), number)
    if first != number:
        raise ConversionError(
            path,
            number,
            f"document '{judgment.doc_id}' is judged twice for query '{judgment.query_id}' "
            f"(first on line {first}); keep one",
        )


def _plain(path: str | os.PathLike[str]) -> Iterator[Qrel] | None:
    """Fast reader of valid four-column files; None for others."""
    try:
        with open_bytes(path) as stream, reading(path, 1):
            text = stream.read(_AT_ONCE).decode().removesuffix("\n")
            is_whole = not stream.peek(1)
    except (ConversionError, UnicodeDecodeError):
        return None
    if not is_whole or "\0" in text or _SPACE_OF_UNICODE.search(text) or not _PLAIN.fullmatch(text):
        return None
    columns, n_lines = text.split(), text.count("\n") + 1
    query_ids, iterations, doc_ids, labels = columns[::4], columns[1::4], columns[2::4], columns[3::4]
    if len(set(map(" ".join, zip(query_ids, iterations, doc_ids, strict=True)))) != n_lines:
        return None
    label_of = {label: int(label) for label in set(labels)}
    if max(label_of.values()) > HIGHEST_LABEL:
        return None
    # One text of each, however often it is there.
    unique_text = {text: text for text in {*query_ids, *iterations}}.__getitem__
    return map(
        Qrel,
        map(unique_text, query_ids),
        doc_ids,
        map(label_of.__getitem__, labels),
        map(unique_text, iterations),
    )


def _judgment(path: str | os.PathLike[str], number: int, columns: Sequence[str], width: int) -> Qrel:
    """The judgment of a line, in a file whose lines have `width` columns."""
    if len(columns) != width:
        lays_out = "query_id 0 doc_id label" + (" confidence run_id" if width == 6 else "")
        if width == 3:
            lays_out = "query_id doc_id label"
        raise ConversionError(path, number, f"has {counted(columns)}, a qrels line has {width}: {lays_out}")
    query_id, iteration, doc_id, text = (columns[0], "0", *columns[1:]) if width == 3 else columns[:4]
    if width == 6:
        iteration = "0"
        if _confidence(columns[4]) is None:
            reason = f"the confidence (column 5) is not in 0..1: '{columns[4][:40]}'; is this a run?"
            raise ConversionError(path, number, reason)
    where = f"the label (column {min(width, 4)})"
    return Qrel(query_id, doc_id, _read_label(path, number, text, where), iteration)


def _read_label(path: str | os.PathLike[str], number: int, text: str, where: str) -> int:
    whole = _WHOLE.fullmatch(text)
    label = int(whole[1]) if whole else None
    if label is None and not (text.isascii() and text.isdigit()):
        raise ConversionError(path, number, f"{where} is not a whole number: '{text[:40]}'")
    if label is None or label > HIGHEST_LABEL:
        raise ConversionError(
            path,
            number,
            f"{where} is above {HIGHEST_LABEL:,}: '{text[:40]}'; is it a score or an id? "
            "trec_eval allocates memory for all labels up to the highest",
        )
    return label


def write_qrels(qrels: Iterable[QrelRow], file: BinaryIO) -> None:
    """Writes judgments sorted by query, subtopic (numerically if possible) and document.

    Raises:
        ValueError: an id has white space in it, or a document occurs twice.
    """
    rows = sorted(qrels, key=_order)
    last = None
    for row in rows:
        line = qrels_line(row)
        key = row.query_id, row.iteration, row.doc_id
        if key == last:
            raise ValueError(f"document '{row.doc_id}' occurs twice for query '{row.query_id}'")
        last = key
        file.write(line)
    warn_of_comments(row.query_id for row in rows)


def qrels_lines(query_id: str, iteration: str, doc_ids: Sequence[str], labels: Iterable[int]) -> bytes:
    """Judgments of one query and subtopic as lines of a qrels file, in the order given.

    Args:
        doc_ids: none twice.

    Raises:
        ValueError: an id is empty or has white space in it.
    """
    start = f"{column(query_id, 'query id')} {column(iteration, 'subtopic')} "
    if " ".join(doc_ids).split() != list(doc_ids):
        for doc_id in doc_ids:
            column(doc_id, "document id")
    pairs = zip(doc_ids, labels, strict=True)
    return "".join([f"{start}{doc_id} {label}\n" for doc_id, label in pairs]).encode()


def qrels_line(row: QrelRow) -> bytes:
    """Return a judgment as a line of a qrels file.

    Raises:
        ValueError: an id has white space in it.
    """
    query_id, doc_id = column(row.query_id, "query id"), column(row.doc_id, "document id")
    return f"{query_id} {column(row.iteration, 'subtopic')} {doc_id} {row.relevance}\n".encode()


def _order(row: QrelRow) -> tuple[str, int, str, str]:
    number = int(row.iteration) if row.iteration.isascii() and row.iteration.isdigit() else -1
    return row.query_id, number, row.iteration, row.doc_id


def _label(text: str) -> int | None:
    if "_" in text or not text.isascii() or len(text) > 9:
        return None
    try:
        return int(text)
    except ValueError:
        return None


def _confidence(text: str) -> float | None:
    value = a_number(text)
    return value if value is not None and 0 <= value <= 1 else None


def judged_with_confidence(start: Head) -> bool:
    """Return True where a file begins like six-column qrels and clearly not like a run.

    Labels are 0..4 and confidences 0..1. A run's fourth column is a rank: no two documents of a query share
    one, or, where its maker did not care, all do, or with ties it rises down the file. So these are judgments
    where two documents of some query share a label, and of some query a lower one comes after a higher one.
    """
    # The last line may be cut.
    lines = start.lines[:-1] if len(start.lines) > 2 else start.lines
    last: dict[str, int] = {}
    labels: set[tuple[str, int]] = set()
    again = falls = False
    for line in lines:
        columns = line.decode(errors="replace").split()
        if len(columns) != 6 or _confidence(columns[4]) is None:
            return False
        query_id, label = columns[0], _label(columns[3])
        if label is None or not 0 <= label <= MAX_LABEL:
            return False
        again = again or (query_id, label) in labels
        falls = falls or label < last.get(query_id, label)
        labels.add((query_id, label))
        last[query_id] = label
    return again and falls


def _sniff(start: Head) -> bool:
    start = without_comments(start)
    if not start.lines:
        return False
    if rows_of(start):
        return rows_of(start) == "qrels"
    line = start.lines[0]
    columns = line.decode(errors="replace").split()
    # A query of three words after its tab has four columns too.
    if line.count(b"\t") == 1 or line.lstrip().startswith((b"{", b"[", b"<")):
        return False
    if looks_like_values(start) or (b"\t" in line and line.count(b"\t") + 1 < len(columns)):
        # A text with blanks between tabs is a query's.
        return False
    if len(columns) == 4 and "://" in columns[1]:
        # MS MARCO's documents have their address there.
        return False
    if len(columns) == 3:
        return _are_three_columns(start) and "quer" not in start.name.lower()
    return len(columns) == 4 or judged_with_confidence(start)


def _are_three_columns(start: Head) -> bool:
    """Return True for a file like BEIR's qrels without a header: a query, a document and a label, by tabs."""
    whole_lines = start.lines[:-1] or start.lines
    rows = [line.decode(errors="replace").rstrip("\r").split("\t") for line in whole_lines]
    return all(len(row) == 3 and " " not in row[1] and _WHOLE.fullmatch(row[2].strip()) for row in rows)


FORMAT = Format(
    "qrels",
    (".qrels", ".txt", ".tsv"),
    "TREC qrels, ndeval's with subtopics, TREC RAG 2025's six columns, BEIR's three; JSON; tables with a "
    "header",
    EXAMPLE,
    _sniff,
    read_qrels,
    write_qrels,
    told_by="four columns that are not a run; six with labels in column 4; three by tabs, a label last; "
    "columns or keys of a query, a document and a label",
    written_as="TREC qrels",
)
