"""TREC runs: `query_id Q0 doc_id rank score tag`, six columns or more, any white space, may be gzipped.

MS MARCO's and Anserini's have three or four: `query_id doc_id rank`, and `score`. A run may begin with an
ir_metadata header, which is comment lines of YAML from `# ir_metadata.start` to `# ir_metadata.end`. Other
lines whose first character is `#` are comments, as in trec_eval 10.

Two ways through a file: a columnar one (pyarrow's CSV reader) for files with one space or
tab between columns, and a careful one in Python for all others, which is also the one that knows line
numbers: whatever the fast one refuses, the careful one reads again, and takes or names the line.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from converters.arrow import numbers, strings
from converters.errors import BadLines, ConversionError
from converters.fields import (
    column,
    counted,
    is_comment,
    warn_of_comments,
    warn_of_skipped_comments,
    without_comments,
)
from converters.lines import Head, columns_of, decode, head, iter_lines, open_bytes, packing, reading
from converters.records import RunEntry
from converters.registry import Format
from converters.run import DuplicateError, Run, ordered
from converters.scored_rows import in_rows, rows_of, scored_rows, tag_of
from converters.trec_qrels import judged_with_confidence

EXAMPLE = "q1 Q0 doc42 1 17.25 myrun"
_COLUMNS = ("query", "q0", "doc", "rank", "score", "tag")
_BLOCK = 4 * 1024 * 1024
#: Rows that the careful way gathers before it packs them.
_CHUNK = 200_000
#: Lines that tell MS MARCO's runs from qrels.
_TOLD_BY = 20
#: Commas of a line whose columns they may separate.
_COMMAS = 2
_METADATA = b"ir_metadata.start", b"ir_metadata.end"


class _RefusedError(Exception):
    """The fast reader cannot read this file."""


def read_run(path: str | os.PathLike[str]) -> Run:
    """Reads a run in trec_eval's order. The tag is the last line's, as in trec_eval.

    Q0 and rank are not looked at, columns after the sixth neither, with a warning; blank lines are fine;
    comments are skipped, with a warning. MS MARCO's runs are named after their files; without scores, the
    score is minus the rank.

    Raises:
        ConversionError: with the line: a wrong number of columns, a score that is not a number, the
            same document twice for a query, not UTF-8, a line too long, damaged gzip, an empty file, a
            header without its end.
    """
    path = Path(path)
    if in_rows(path):
        return _of_rows(path)
    metadata, skip = _header(path)
    try:
        name, query_ids, codes, doc_ids, scores = _fast(path, skip)
    except _RefusedError:
        name, query_ids, codes, doc_ids, scores = _careful(path, skip)
    try:
        return replace(ordered(name, query_ids, codes, doc_ids, scores), metadata=metadata)
    except DuplicateError as error:
        raise _name_duplicate(path, error, skip) from None


def _of_rows(path: Path) -> Run:
    """Read a run that is JSON, or a table with a header."""
    entries: dict[tuple[str, str], float] = {}
    tag = ""
    with BadLines() as bad:
        for row in scored_rows(path, bad.add):
            try:
                score = _number(path, row.line, str(row.value).encode(), "the score")
                if (row.query_id, row.doc_id) in entries:
                    reason = f"document '{row.doc_id}' occurs twice for query '{row.query_id}'; keep one"
                    raise ConversionError(path, row.line, reason)
            except ConversionError as error:
                bad.add(error)
                continue
            entries[row.query_id, row.doc_id] = score
            tag = row.tag
    if not entries:
        raise ConversionError(path, None, "no document in it")
    return Run.from_entries(tag, ((*key, score) for key, score in entries.items()))


def _header(path: Path) -> tuple[str, int]:
    """The ir_metadata header of a run as YAML, and its number of lines; ("", 0) without one."""
    metadata: list[str] = []
    for number, line in iter_lines(path):
        text = line.removeprefix(b"#").removeprefix(b" ").rstrip()
        if number == 1:
            if text != _METADATA[0]:
                break
        elif text == _METADATA[1]:
            return "\n".join(metadata), number
        elif not line.startswith(b"#"):
            raise ConversionError(path, number, "the ir_metadata header has no line `# ir_metadata.end`")
        else:
            metadata.append(decode(path, number, text))
    if metadata:
        raise ConversionError(path, None, "no run lines: the file ends within its ir_metadata header")
    return "", 0


def write_run(entries: Iterable[RunEntry], file: BinaryIO, metadata: str = "") -> None:
    """Writes entries in the order given, one space between columns; ranks and scores as they are.

    Args:
        metadata: YAML that is written before them, as an ir_metadata header.

    Raises:
        ValueError: an id or tag is empty or has white space in it.
    """
    if metadata:
        start, end = _METADATA
        lines = (start, *metadata.encode().split(b"\n"), end)
        file.write(b"".join(b"# " + line + b"\n" for line in lines))
    query_ids = set()
    for entry in entries:
        query_ids.add(entry.query_id)
        query_id, doc_id = column(entry.query_id, "query id"), column(entry.doc_id, "document id")
        tag = column(entry.run, "run tag")
        file.write(f"{query_id} Q0 {doc_id} {entry.rank} {float(entry.score)!r} {tag}\n".encode())
    warn_of_comments(query_ids)


def _sniff(start: Head) -> bool:
    if start.lines[0].rstrip() == b"# " + _METADATA[0] or rows_of(start) == "run":
        return True
    start = without_comments(start)
    if (
        not start.lines
        or start.lines[0].lstrip().startswith((b"{", b"[", b"<"))
        or judged_with_confidence(start)
    ):
        return False
    # A mistake on one line must not hide that the file is a run, so a few lines are looked at.
    return any(map(_looks_like_a_run, start.lines[:5])) or _short_width(start) > 0


def _short_width(start: Head, *, asked: bool = False) -> int:
    """The number of columns of an MS MARCO run, 3 or 4; 0 if it is not clearly one.

    In each query ranks count up from 0 or 1 and scores fall, where qrels have documents and labels.

    Args:
        asked: somebody says that it is a run, so one line of a query is enough; else two or three are.
    """
    lines = without_comments(start).lines[:_TOLD_BY]
    width = len(lines[0].split()) if lines else 0
    last: dict[bytes, tuple[int, float]] = {}
    counts: dict[bytes, int] = {}
    documents: set[tuple[bytes, bytes]] = set()
    some_fraction = False
    for line in lines:
        columns = line.split()
        if width not in (3, 4) or len(columns) != width or line.count(b"\t") == 1 or not columns[2].isdigit():
            return 0
        query, rank = columns[0], int(columns[2])
        score = _score(columns[3]) if width == 4 else -rank
        before = last.get(query)
        in_order = rank <= 1 if before is None else rank == before[0] + 1
        if score is None or not in_order or (before and score > before[1]):
            return 0
        # Labels are whole numbers; scores that are whole, too, fall from line to line.
        # The second column of qrels is a number or Q0.
        named = b"\t" in line and not columns[1].isdigit() and columns[1].upper() != b"Q0"
        some_fraction = some_fraction or width == 3 or b"." in columns[3] or named
        counts[query] = counts.get(query, 0) + (before is None or score < before[1] or some_fraction)
        last[query] = rank, score
        documents.add((query, columns[1]))
    most = max(counts.values(), default=0)
    least = 1 if asked else 2 if some_fraction else 3
    return width if most >= least and len(documents) == len(lines) else 0


def _looks_like_a_run(line: bytes) -> bool:
    columns = line.split()
    if len(columns) < 5:
        return False
    if line.count(b"\t") == 1:
        # A query and its words.
        return False
    numbered = columns[3].isdigit() and len(columns) >= 6 and _score(columns[4]) is not None
    return numbered or (columns[1].upper() == b"Q0" and (columns[3].isdigit() or len(columns) >= 6))


def _score(text: bytes) -> float | None:
    # Python takes 1_000 for a number; C's atof, and so trec_eval, does not.
    if b"_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


class _Plain:
    """A stream for the fast reader that rejects white space which that would misread.

    That is any other than single delimiters and LF or CR LF: two delimiters in a row would make an empty
    column and move the score into the rank's place, a lone CR would end a line.
    """

    def __init__(self, stream: BinaryIO, path: Path, delimiter: bytes) -> None:
        self._stream = stream
        self._path = path
        self._refused = [byte for byte in (b" ", b"\t", b"\v", b"\f", b"\0") if byte != delimiter]
        self._double = delimiter * 2
        # As if after a line end: a comment may be on the first line.
        self._last = b"\n"
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        with reading(self._path, None):
            block = self._stream.read(size)
        self._check(block)
        return block

    def check_rest(self, size: int) -> None:
        """Checks the rest of the stream with one buffer of this size."""
        buffer = bytearray(size)
        with reading(self._path, None):
            while count := self._stream.readinto(buffer):  # type: ignore[attr-defined]
                self._check(buffer if count == size else buffer[:count])

    def _check(self, block: bytes | bytearray) -> None:
        import numpy as np

        if any(byte in block for byte in self._refused):
            raise _RefusedError
        # What stands across two blocks is looked at with the second one.
        seam = self._last + bytes(block[:1])
        self._last = bytes(block[-1:])
        if seam in (self._double, b"\n#") or (b"\r" in seam[:-1] and seam != b"\r\n") or b"\n#" in block:
            raise _RefusedError
        if b"\r" in block and block.count(b"\r") != block.count(b"\r\n") + block.endswith(b"\r"):
            raise _RefusedError
        pair = int.from_bytes(self._double, "little")
        for start in (0, 1):
            # Two bytes as one number: five times as fast as looking for the pair in the bytes.
            count = (len(block) - start) // 2
            if count > 0 and (np.frombuffer(block, "<u2", count, start) == pair).any():
                raise _RefusedError


def _fast(path: Path, skip: int = 0) -> tuple[str, tuple[str, ...], Any, Any, Any]:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    with open_bytes(path) as stream:
        with reading(path, 1):
            for _ in range(skip):
                stream.readline()
            first = stream.peek(_BLOCK)[:_BLOCK].split(b"\n", 1)[0]
        delimiter = b"\t" if b"\t" in first else b" "
        width = len(first.rstrip(b"\r").split(delimiter))
        if width < 6:
            raise _RefusedError
        plain = _Plain(stream, path, delimiter)
        # A buffer of the full size takes longer to fill with zeros than a small run takes to read.
        size = _BLOCK if packing(path) else min(_BLOCK, path.stat().st_size + 1)
        source: Any
        if packing(path):
            source, skip = pa.PythonFile(plain, mode="r"), 0
        else:
            # pyarrow reads a file by its name faster than through Python.
            plain.check_rest(size)
            source = str(path)
        word = pa.dictionary(pa.int32(), pa.string())
        try:
            table = csv.read_csv(
                source,
                # Threads are no faster, and each keeps its own heap: 60 MiB after a hundred runs.
                read_options=csv.ReadOptions(
                    column_names=[*_COLUMNS, *map(str, range(6, width))],
                    block_size=size,
                    use_threads=False,
                    skip_rows=skip,
                ),
                parse_options=csv.ParseOptions(delimiter=delimiter.decode(), quote_char=False),
                convert_options=csv.ConvertOptions(
                    column_types={
                        "query": word,
                        "doc": pa.large_string(),
                        "score": pa.float64(),
                        "tag": word,
                    },
                    include_columns=["query", "doc", "score", "tag"],
                    null_values=[],
                    strings_can_be_null=False,
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, UnicodeError, OSError):
            raise _RefusedError from None
        except pa.ArrowCancelled:
            # A signal came: pyarrow ends its reading and sends it again. Its handler decides what ends.
            raise _RefusedError from None
    if not table.num_rows:
        raise _RefusedError
    query_ids: dict[str, int] = {}
    codes = []
    for chunk in table["query"].chunks:
        # Each block has its own dictionary.
        block_codes = [
            query_ids.setdefault(query_id, len(query_ids)) for query_id in chunk.dictionary.to_pylist()
        ]
        codes.append(np.array(block_codes, np.int32)[numbers(chunk.indices)])
    scores = numbers(table["score"].combine_chunks())
    doc_ids = table["doc"].combine_chunks()
    tags = {tag for chunk in table["tag"].chunks for tag in chunk.dictionary.to_pylist()}
    some_empty = "" in query_ids or "" in tags or pc.min(pc.binary_length(doc_ids)).as_py() == 0
    if some_empty or np.isnan(scores).any():
        raise _RefusedError
    _warn_of_width(path, len(first.split()))
    return table["tag"][-1].as_py(), tuple(query_ids), np.concatenate(codes), doc_ids, scores


def _careful(path: Path, skip: int = 0) -> tuple[str, tuple[str, ...], Any, Any, Any]:
    import numpy as np
    import pyarrow as pa

    query_ids: dict[bytes, int] = {}
    codes: list[int] = []
    docs: list[str] = []
    scores: list[float] = []
    packed: list[tuple[Any, Any, Any]] = []
    tag = b""
    number = short = width = n_comments = 0

    def pack() -> None:
        if codes:
            packed.append((np.array(codes, np.int32), strings(docs), np.array(scores)))
            codes.clear()
            docs.clear()
            scores.clear()

    with BadLines() as bad:
        for number, line in iter_lines(path):
            try:
                columns = columns_of(path, number, line)
                if not columns or number <= skip:
                    continue
                if is_comment(line):
                    n_comments += 1
                    continue
                if not tag and len(columns) in (3, 4):
                    # Nothing else has three columns; four may be qrels.
                    is_short = (
                        columns[2].isdigit() if len(columns) == 3 else _short_width(head(path), asked=True)
                    )
                    short = len(columns) if is_short else 0
                if short and len(columns) == short:
                    columns = _six(path, number, columns)
                elif short or len(columns) < 6:
                    expected = "6: query_id Q0 doc_id rank score tag"
                    if short:
                        expected = f"{short} here: query_id doc_id rank{' score' * (short - 3)}"
                    if line.count(b",") >= _COMMAS:
                        expected += "; columns are separated by commas: use spaces or tabs"
                    raise ConversionError(path, number, f"has {counted(columns)}, a run line has {expected}")
                if not line.isascii():
                    decode(path, number, line)
                score = _number(path, number, columns[4])
            except ConversionError as error:
                bad.add(error)
                continue
            codes.append(query_ids.setdefault(columns[0], len(query_ids)))
            docs.append(columns[2].decode())
            scores.append(score)
            tag = columns[5]
            width = max(width, len(columns))
            if len(codes) >= _CHUNK:
                pack()
    pack()
    if not packed:
        why = "all lines are comments" if n_comments else "the file is empty"
        raise ConversionError(path, None, f"no run lines: {why}")
    _warn_of_width(path, width)
    warn_of_skipped_comments(path, n_comments)
    return (
        tag.decode(),
        tuple(query_id.decode() for query_id in query_ids),
        np.concatenate([part[0] for part in packed]),
        pa.chunked_array([part[1] for part in packed]).combine_chunks(),
        np.concatenate([part[2] for part in packed]),
    )


def _warn_of_width(path: Path, width: int) -> None:
    """Logs a warning about a run with more than six columns."""
    if width > 6:
        reason = f"has {width} columns; the first six count: query_id Q0 doc_id rank score tag"
        logging.getLogger("converters").warning("%s: %s", path, reason)


def _number(path: Path, number: int, text: bytes, what: str = "the score (column 5)") -> float:
    """Return a line's score; infinite ones have an order, NaN has none."""
    if (score := _score(text)) is None or math.isnan(score):
        reason = f"{what} is not a number: {_shown(text)}{' (write a point)' * (b',' in text)}"
        raise ConversionError(path, number, reason)
    return score


def _six(path: Path, number: int, columns: list[bytes]) -> list[bytes]:
    """Converts a line of an MS MARCO run to TREC's columns."""
    query_id, doc_id, rank, *score = columns
    if not rank.isdigit():
        raise ConversionError(path, number, f"the rank (column 3) is not a whole number: {_shown(rank)}")
    tag = tag_of(path)
    return [query_id, b"Q0", doc_id, rank, score[0] if score else b"-" + rank, tag.encode()]


def _shown(value: bytes) -> str:
    text = value[:40].decode(errors="replace")
    return f"'{text}'" if len(value) <= 40 else f"'{text}...'"


def _name_duplicate(path: Path, error: DuplicateError, skip: int) -> ConversionError:
    """Raises the error for a duplicate, with its lines."""
    duplicate = error.query_id.encode(), error.doc_id.encode()
    first = 0
    for number, line in iter_lines(path):
        columns = line.split()
        doc_column = 2 if len(columns) >= 6 else 1
        if (
            columns
            and number > skip
            and not is_comment(line)
            and (columns[0], columns[doc_column]) == duplicate
        ):
            if first:
                return ConversionError(
                    path,
                    number,
                    f"document '{error.doc_id}' occurs twice for query '{error.query_id}' "
                    f"(first on line {first}); keep one",
                )
            first = number
    return ConversionError(path, None, f"document '{error.doc_id}' occurs twice for query '{error.query_id}'")


FORMAT = Format(
    "run",
    (".run", ".txt", ".trec", ".tsv"),
    "TREC run, with an ir_metadata header or without; MS MARCO run `query doc rank`, with a score or "
    "without; JSON; tables with a header",
    EXAMPLE,
    _sniff,
    read_run,
    write_run,
    told_by="six columns, a number in the fifth; or three or four, where ranks of a query count up; columns "
    "or keys of a query, a document and a score or rank",
    written_as="TREC run; `export runs --metadata` writes headers",
)
