"""File formats by name: detecting, reading and writing.

New formats come in through the entry point group "converters.formats", whose objects are `Format`s.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from converters.errors import ConversionError
from converters.installed import entry_points
from converters.lines import Head, head
from converters.records import Item
from converters.unpacking import open_write

#: Formats that come with the package, in the order in which they are tried on a file.
BUILT_IN = {
    "run": "converters.trec_run",
    "qrels": "converters.trec_qrels",
    "rubric": "converters.rubric_jsonl",
    "bank": "converters.bank",
    "grades": "converters.grades_jsonl",
    "umbrela": "converters.umbrela",
    "responses": "converters.rag_responses",
    "passages": "converters.passages",
    "queries": "converters.queries",
    "leaderboard": "converters.leaderboard",
    # These are told apart by nobody: they are written, and read as responses and banks.
    "rag24": "converters.rag_responses:RAG24",
    "rag25": "converters.rag_responses:RAG25",
    "ragtime": "converters.rag_responses:RAGTIME",
    "nuggets-v3": "converters.bank:V3",
    "nuggets-ragtime": "converters.bank:RAGTIME",
    "workbench": "converters.workbench",
}


@dataclass(frozen=True)
class LineForm:
    """A further form of lines of test banks.

    Attributes:
        claims: whether a line has it.
        query: (path, line number, line) -> the query's id, and its text or "".
        items: the same -> the line's items.
        forgiving: what is wrong with a line leaves out that line, and the others are read.
        noun: what an item is called in the error on duplicates; "" if duplicates are allowed.
        whole: the items of a line are judged together, and none is edited alone.
        kinds: those of its items that no other form has; they are read alone, and not written.
    """

    claims: Callable[[Mapping[str, Any]], bool]
    query: Callable[[str | os.PathLike[str], int, Mapping[str, Any]], tuple[str, str]]
    items: Callable[[str | os.PathLike[str], int, Mapping[str, Any]], Iterable[Item]]
    forgiving: bool = False
    noun: str = ""
    whole: bool = False
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes:
        extensions: usual endings of its files, without .gz.
        example: one line of it.
        sniff: whether the beginning of a file looks like it.
        read: path -> records; raises ConversionError.
        write: (records, file) -> None, or None where it is only read.
        told_by: what of a file's content tells this format from the others; a row of the docs' table.
        written_as: which of its forms is written, where it has several.
        of: formats whose files it reads, too, as other records.
        bank_lines: a form that lines of test banks may have, too.
        becomes: further formats that its files can be converted to: (path, which of its runs) -> records.
    """

    name: str
    extensions: tuple[str, ...]
    description: str
    example: str
    sniff: Callable[[Head], bool]
    read: Callable[[Path], Iterable[Any]]
    write: Callable[[Iterable[Any], BinaryIO], None] | None
    told_by: str = ""
    written_as: str = ""
    of: tuple[str, ...] = ()
    bank_lines: LineForm | None = None
    becomes: Mapping[str, Callable[[Path, str | None], Iterable[Any]]] = field(default_factory=dict)


def never(_: Head) -> bool:
    """Sniff nothing: a format that is read where it is named."""
    return False


@cache
def _load(at: str) -> Format:
    """Import the format at "module:attribute", or a module's `FORMAT`."""
    module, _, attribute = at.partition(":")
    file_format: Format = getattr(import_module(module), attribute or "FORMAT")
    return file_format


@cache
def _places() -> Mapping[str, str]:
    """Return "module:attribute" of each format by name, in the order of detection."""
    places = dict(BUILT_IN)
    for name, at, _ in entry_points("converters.formats"):
        places.setdefault(name, at)
    return places


def formats() -> tuple[Format, ...]:
    """Return all formats, in the order of detection."""
    return tuple(map(_load, _places().values()))


def formats_of_others() -> tuple[Format, ...]:
    """Return the formats that other packages declare."""
    return tuple(_load(at) for name, at in _places().items() if name not in BUILT_IN)


def sniff(path: str | os.PathLike[str]) -> str:
    """The name of the format that a file's content looks like.

    Raises:
        ConversionError: it looks like none, or cannot be read.
    """
    start = head(path)
    name = next((name for name, at in _places().items() if _load(at).sniff(start)), None)
    if name is None:
        raise ConversionError(path, 1, f"in none of the supported formats ({', '.join(_places())})")
    return name


def read(path: str | os.PathLike[str], format: str | None = None) -> Any:  # noqa: A002 - the field's word
    """The records in a file: a `Run`, or a lazy iterator of records.

    Args:
        format: its format; None to tell from its content.

    Raises:
        ConversionError: with path, line and reason, at once or while iterating.
    """
    return _format(format if format is not None else sniff(path), path).read(Path(path))


def write(records: Iterable[Any], path: str | os.PathLike[str], format: str) -> None:  # noqa: A002
    """Write records to a file, compressed where its name ends in .gz, .bz2, .xz or .zst.

    Raises:
        ConversionError: the format is unknown or cannot be written.
        ValueError: a record cannot be written in this format (an id with white space, a duplicate).
    """
    file_format = _format(format, path)
    if file_format.write is None:
        raise ConversionError(path, None, f"the format '{format}' is only read, not written")
    with open_write(Path(path)) as file:
        file_format.write(records, file)


def _format(name: str, path: str | os.PathLike[str]) -> Format:
    places = _places()
    if name not in places:
        near = difflib.get_close_matches(name, places, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"the formats are {', '.join(places)}"
        raise ConversionError(path, None, f"no format '{name}'; {hint}")
    return _load(places[name])
