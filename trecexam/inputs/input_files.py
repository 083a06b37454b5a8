"""Records of one file of a track folder; unreadable files raise ConversionError."""

from __future__ import annotations

import hashlib
from pathlib import Path

import converters
from converters.bank import read_bank, read_bank_queries
from converters.errors import ConversionError
from converters.lines import open_input
from converters.overrides import read_overrides
from converters.records import HumanRating, Item, Qrel
from trecexam.errors import quoted


def sha256_of(path: Path) -> str:
    """Return the sha256 (hex) of a file's content."""
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_bank_file(path: Path) -> tuple[tuple[Item, ...], dict[str, str], list[ConversionError]]:
    """Read a bank file: items, texts of queries, and lines that are no items."""
    blank: list[ConversionError] = []
    try:
        items = tuple(read_bank(path, blank.append))
    except ConversionError as error:
        if error.line is None:
            raise
        # A track without a folder links its files.
        file = path.parent / path.readlink() if path.is_symlink() else path
        mend = f"mend the line; `trecexam bank check {quoted(file)}` names all such lines"
        raise ConversionError(path, error.line, f"{error.reason}; {mend}") from None
    return items, {query.query_id: query.text for query in read_bank_queries(path)}, blank


def read_queries_file(path: Path) -> dict[str, str]:
    """Read query_id -> text."""
    return {query.query_id: query.text for query in converters.read(path, "queries")}


def read_qrels_file(path: Path) -> tuple[Qrel, ...]:
    """Read judgments in the order of the file."""
    return tuple(converters.read(path, "qrels"))


def read_overrides_file(path: Path) -> tuple[tuple[tuple[int, HumanRating], ...], list[ConversionError]]:
    """Read (line, rating) of each rating, and the errors of other lines."""
    refused: list[ConversionError] = []
    return tuple(read_overrides(path, refused.append)), refused
