"""Reads bytes and lines, plain or packed (detected by content), in bounded memory."""

from __future__ import annotations

import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from converters.errors import ConversionError, StoppedError
from converters.unpacking import UnpackingError, packed_as, unpacked

#: The longest line a reader takes, in bytes: a graded pool has all passages of a query on one.
MAX_LINE = 64 * 1024 * 1024
#: What is read at once, in bytes.
_BLOCK = 256 * 1024
#: What `head` looks at, in bytes.
HEAD = 64 * 1024

#: The largest file that a reader takes as a whole, in bytes.
MAX_WHOLE = 64 * 1024 * 1024
#: So much of a file is read, in bytes, before `stop` is called: that takes no time.
BEFORE_STOP = 16 * 1024 * 1024

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_LIST = re.compile(rb"\s*\[\s*(\{|\]|$)")
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(rb'"(?P<key>(?:[^"\\]|\\.)*+)"\s*+:|"(?:[^"\\]|\\.)*+"?|[{}\[\]]')


_asked_to_stop: ContextVar[Callable[[], bool] | None] = ContextVar("stopped", default=None)


class _Input(io.FileIO):
    """A regular input file whose reading can be stopped."""

    def __init__(self, path: Path) -> None:
        # A pipe without a writer would be waited for; the check below is of what was opened.
        super().__init__(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
        self._asked_to_stop = _asked_to_stop.get()
        self._count = 0

    def readinto(self, buffer: Any) -> int | None:
        if self._count > BEFORE_STOP and self._asked_to_stop is not None and self._asked_to_stop():
            raise StoppedError
        count = super().readinto(buffer)
        self._count += count or 0
        return count


def open_input(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Opens a user's file for reading bytes; rejects pipes and devices. All inputs are opened here.

    Raises:
        ConversionError: it is a pipe, a socket or a device: those are waited for, or never end.
        OSError: it is not there, is a folder, or cannot be opened.
    """
    path = Path(path)
    # Opening some devices does something, so that they are not even opened.
    _refuse_irregular(path, path.stat().st_mode)
    file = _Input(path)
    try:
        _refuse_irregular(path, os.fstat(file.fileno()).st_mode)
    except ConversionError:
        file.close()
        raise
    return io.BufferedReader(file, _BLOCK)


def _refuse_irregular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        what = "is a socket" if stat.S_ISSOCK(mode) else "is a pipe or a device"
        raise ConversionError(path, None, f"{what}; write it to a file and name that")


@contextmanager
def stoppable(asked_to_stop: Callable[[], bool] | None) -> Iterator[None]:
    """Makes reading raise a StoppedError once `stop` returns true; small files are read to their end."""
    token = _asked_to_stop.set(asked_to_stop)
    try:
        yield
    finally:
        _asked_to_stop.reset(token)


class Head(NamedTuple):
    """The beginning of a file, for sniffing: its name, its first non-blank lines, decompressed."""

    name: str
    lines: tuple[bytes, ...]


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[io.BufferedReader]:
    """The decompressed bytes of a file, after a UTF-8 byte-order mark if it has one.

    Raises:
        ConversionError: there is no such file, or it cannot be opened, or it is UTF-16.
    """
    try:
        raw = open_input(path)
    except FileNotFoundError:
        raise ConversionError(path, None, "no such file") from None
    except IsADirectoryError:
        raise ConversionError(path, None, "is a folder, not a file") from None
    except OSError as error:
        raise ConversionError(path, None, f"cannot be opened: {error.strerror}") from None
    with raw:
        with reading(path, None):
            stream = unpacked(raw)
        with reading(path, 1):
            start = stream.peek(3)[:3]
        if start[:2] in _UTF16_BOMS:
            raise ConversionError(path, 1, "is UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8")
        if start == _UTF8_BOM:
            stream.read(3)
        yield stream


@contextmanager
def reading(path: str | os.PathLike[str], line: int | None) -> Iterator[None]:
    """Converts errors while reading bytes to a ConversionError."""
    try:
        yield
    except UnpackingError as error:
        raise ConversionError(path, line, str(error)) from None
    except OSError as error:
        raise ConversionError(path, line, f"cannot be read: {error.strerror or error}") from None


def packing(path: str | os.PathLike[str]) -> str:
    """Return what a file is packed as by its content: "gzip", "xz", "parquet" ..., or "" for plain text.

    Raises:
        ConversionError: it cannot be read, perhaps because it has been taken away meanwhile.
    """
    with reading(path, None), open_input(path) as file:
        return packed_as(file.read(8))


def iter_lines(path: str | os.PathLike[str], *, nul: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yields (line number from 1, line without CR LF).

    Args:
        nul: lines with a NUL byte are given, too.

    Raises:
        ConversionError: with the line: damaged gzip, a line over `MAX_LINE` bytes, a NUL byte.
    """
    number, size = 0, 0
    parts: list[bytes] = []
    with open_bytes(path) as stream:
        while True:
            with reading(path, number + 1):
                block = stream.read1(_BLOCK)
            lines = block.split(b"\n")
            # The first ends what earlier blocks began; the last continues in the next one.
            parts.append(lines[0])
            size += len(lines[0])
            if block and len(lines) == 1:
                if size > MAX_LINE + 1:
                    raise _too_long(path, number + 1)
                continue
            lines[0] = b"".join(parts)
            parts, size = [lines[-1]], len(lines[-1])
            if not block and not lines[0]:
                return
            block_lines = lines[:-1] if block else lines
            # With most blocks nothing can be wrong, but with what began before them.
            is_plain = b"\r" not in block and b"\0" not in block
            for line in block_lines[:1] if is_plain else block_lines:
                number += 1
                line = line.rstrip(b"\r")
                if len(line) > MAX_LINE:
                    raise _too_long(path, number)
                if b"\0" in line and not nul:
                    raise ConversionError(path, number, "a NUL byte: this is not a text file")
                yield number, line
            if is_plain:
                yield from enumerate(block_lines[1:], number + 1)
                number += len(block_lines) - 1
            if not block:
                return


def _too_long(path: str | os.PathLike[str], number: int) -> ConversionError:
    reason = f"the line is longer than {MAX_LINE // 2**20} MiB; is this a text file?"
    return ConversionError(path, number, reason)


def head(path: str | os.PathLike[str], *, nul: bool = False) -> Head:
    """The first non-blank lines of the first 64 KiB; the last of them may be cut.

    Args:
        nul: lines with a NUL byte are given, too.

    Raises:
        ConversionError: the file cannot be read, is binary, or is empty.
    """
    with open_bytes(path) as stream, reading(path, 1):
        start = stream.read(HEAD)
    if b"\0" in start and not nul:
        line = start[: start.index(b"\0")].count(b"\n") + 1
        raise ConversionError(path, line, "a NUL byte: this is not a text file")
    lines = tuple(line for line in start.splitlines() if line.strip())
    if not lines:
        raise ConversionError(path, None, "the file is empty")
    return Head(Path(path).name, lines)


def decode(path: str | os.PathLike[str], number: int, line: bytes) -> str:
    """A line as text.

    Raises:
        ConversionError: it is not UTF-8.
    """
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ConversionError(
            path, number, f"not UTF-8 (byte {error.start + 1}); convert it: iconv -f LATIN1 -t UTF-8"
        ) from None


def read_whole(path: str | os.PathLike[str]) -> str:
    """A whole file as text with LF line ends, for formats that are not line-based.

    Raises:
        ConversionError: with the line: as `iter_lines`, not UTF-8, or the file is over `MAX_WHOLE` bytes.
    """
    gathered = bytearray()
    for number, line in iter_lines(path):
        if not line.isascii():
            decode(path, number, line)
        gathered += line
        gathered += b"\n"
        if len(gathered) > MAX_WHOLE:
            raise ConversionError(path, number, f"the file is larger than {MAX_WHOLE // 2**20} MiB; split it")
    return gathered.decode()


def parse_json(path: str | os.PathLike[str], number: int, line: bytes) -> Any:
    """The JSON value on a line.

    Raises:
        ConversionError: it is not JSON, or not UTF-8.
    """
    import orjson

    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        decode(path, number, line)
        raise ConversionError(path, number, f"not valid JSON: {error.msg} (column {error.colno})") from None


def parse_object(path: str | os.PathLike[str], number: int, line: bytes) -> dict[str, Any]:
    """The JSON object on a line.

    Raises:
        ConversionError: it is not JSON, or not an object.
    """
    value = parse_json(path, number, line)
    if not isinstance(value, dict):
        raise ConversionError(path, number, "not a JSON object ({...})")
    return value


def columns_of(path: str | os.PathLike[str], number: int, line: bytes) -> list[bytes]:
    """The white-space separated columns of a line.

    Raises:
        ConversionError: a carriage return stands inside it: lines would be taken for columns.
    """
    if b"\r" in line:
        raise ConversionError(
            path, number, r"a carriage return inside the line; convert old Mac line ends: tr '\r' '\n'"
        )
    return line.split()


def iter_objects(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object): one a line, or those of one JSON document.

    Raises:
        ConversionError: with the line: not JSON, not an object; there is none.
    """
    if is_json_document(head(path)):
        text, whole = read_document(path)
        for number, value in json_values(path, text) if isinstance(whole, list) else [(1, whole)]:
            if not isinstance(value, dict):
                raise ConversionError(path, number, "an entry of the list is not a JSON object")
            yield number, value
        return
    for number, line in iter_filled(path):
        yield number, parse_object(path, number, line)


def is_json_document(start: Head) -> bool:
    """Return True where a file is one JSON document: a list of objects, or one object over several lines."""
    first, *others = start.lines
    # One object over several lines begins with a bare bracket, and a key on the next line.
    return is_list(first) or (first.strip() == b"{" and others[:1] != [] and others[0].lstrip()[:1] == b'"')


def is_list(line: bytes) -> bool:
    """Return True where a first line begins as a JSON list of objects does."""
    return bool(_LIST.match(line))


def read_document(path: str | os.PathLike[str]) -> tuple[str, Any]:
    """Return the text of a file that is one JSON document, and its value.

    Raises:
        ConversionError: with the line: bad JSON.
    """
    import orjson

    text = read_whole(path)
    try:
        # For its reasons, and because json takes NaN and halves of surrogate pairs.
        return text, orjson.loads(text)
    except orjson.JSONDecodeError as error:
        reason = f"not valid JSON: {error.msg} (column {error.colno})"
        raise ConversionError(path, error.lineno, reason) from None


def json_values(path: str | os.PathLike[str], text: str, start: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield (line, value) of what is in the brackets of valid JSON from `start` on: entries, or keys and
    values.
    """
    decode = json.JSONDecoder().raw_decode
    line, counted = 1, 0
    position = _after_space(text, _after_space(text, start) + 1)
    while text[position] not in "]}":
        line += text.count("\n", counted, position)
        counted = position
        try:
            value, position = decode(text, position)
        except RecursionError:
            raise ConversionError(path, line, "nested too deeply") from None
        yield line, value
        position = _after_space(text, position)
        if text[position] in ",:":
            position = _after_space(text, position + 1)


def _after_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def iter_filled(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    """Like `iter_lines`, without blank lines.

    Raises:
        ConversionError: there are no others.
    """
    empty = True
    for number, line in iter_lines(path):
        if line.strip():
            empty = False
            yield number, line
    if empty:
        raise ConversionError(path, None, "the file is empty")


def first_object(head: Head) -> dict[str, Any] | None:
    """The JSON object on the first line of a file's head, or None.

    Of a line that is cut or damaged, the top-level keys that can be seen, each with None: a long text or
    a mistake on the first line must not hide what the file is.
    """
    import orjson

    first = head.lines[0]
    try:
        value = orjson.loads(first)
    except orjson.JSONDecodeError:
        return dict.fromkeys(top_level_keys(first)) if first.lstrip().startswith(b"{") else None
    return value if isinstance(value, dict) else None


def head_object(head: Head) -> dict[str, Any] | None:
    """Like `first_object`, but also for one JSON object over several lines, and the first one of a list."""
    if not is_json_document(head):
        return first_object(head)
    text = b"\n".join(head.lines).lstrip()
    if not text.startswith(b"["):
        return first_object(Head(head.name, (text,)))
    try:
        value, _ = json.JSONDecoder().raw_decode(text[1:].lstrip().decode(errors="replace"))
    except (ValueError, RecursionError):
        return dict.fromkeys(top_level_keys(text[1:]))
    return value if isinstance(value, dict) else None


def top_level_keys(line: bytes) -> Iterator[str]:
    """The readable keys of a JSON object that may be cut or damaged."""
    depth = 0
    for token in _TOKEN.finditer(line):
        if token["key"] is not None:
            if depth == 1:
                yield token["key"].decode(errors="replace")
        elif token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
