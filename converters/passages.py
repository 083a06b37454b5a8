"""Passages: JSON Lines with an id and a text. A title, where there is one, is not put before the text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from converters.errors import ConversionError
from converters.fields import a_text, an_id
from converters.lines import Head, first_object, iter_filled, parse_object
from converters.records import Passage
from converters.registry import Format

EXAMPLE = '{"docid": "doc42", "text": "Heat pumps move heat ..."}'
ID_KEYS = ("docid", "doc_id", "id")
TEXT_KEYS = ("text", "contents", "segment")


def read_passages(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[Passage]:
    """The passages of a file, one at a time, in its order.

    Args:
        on_error: takes the error of a bad line, which is then left out; None raises it.

    Raises:
        ConversionError: with the line: bad JSON, no id, no text; a damaged or empty file in any case.
    """
    return (passage for _, passage in numbered_passages(path, on_error))


def numbered_passages(
    path: str | os.PathLike[str], on_error: Callable[[ConversionError], None] | None = None
) -> Iterator[tuple[int, Passage]]:
    """The same, each with its line."""
    import orjson

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
            passage = Passage(doc_id, a_text(path, number, row, TEXT_KEYS, f"passage '{doc_id}'"))
        except ConversionError as error:
            if on_error is None:
                raise
            on_error(error)
            continue
        yield number, passage


def write_passages(passages: Iterable[Passage], file: BinaryIO) -> None:
    """Writes `{"docid", "text"}` lines."""
    import orjson

    for passage in passages:
        file.write(orjson.dumps({"docid": passage.doc_id, "text": passage.text}) + b"\n")


def _sniff(start: Head) -> bool:
    row = first_object(start)
    if row is None or not any(key in row for key in ID_KEYS):
        return False
    if any(key in row for key in ("docid", "doc_id", "contents", "segment")):
        return any(key in row for key in TEXT_KEYS)
    # {"id", "text"} may be either; people name query files so.
    named_queries = any(word in start.name.lower() for word in ("quer", "topic"))
    return "text" in row and not named_queries and "query_id" not in row and "qid" not in row


FORMAT = Format("passages", (".jsonl",), "passages, JSONL", EXAMPLE, _sniff, read_passages, write_passages)
