"""Topics in one JSON document: `{query_id: text}`, as TREC RAG 2024 has them, or a list of objects."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from converters.errors import ConversionError
from converters.fields import a_text, an_id
from converters.lines import Head, first_object, read_whole, top_level_keys
from converters.records import Query

ID_KEYS = ("query_id", "qid", "id")
TEXT_KEYS = ("text", "title", "query")
#: In a list, where it is clear what each object is, these may name the id and the text as well.
LIST_ID_KEYS = (*ID_KEYS, "topic_id", "number", "num")
LIST_TEXT_KEYS = (*TEXT_KEYS, "question", "topic", "description", "narrative")
_PASSAGE_KEYS = ("docid", "doc_id", "contents", "segment")
_LIST = re.compile(rb"\s*\[\s*(\{|\]|$)")
_FIRST_TEXT = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*"')
_SPACE = re.compile(r"[ \t\r\n]*")


def is_document(start: Head) -> bool:
    """Whether a file of queries is one JSON document, and not JSON Lines or text."""
    line = start.lines[0]
    if not line.lstrip().startswith(b"{"):
        return bool(_LIST.match(line))
    row = first_object(start)
    if not row:
        return True
    if any(key in row for key in (*ID_KEYS, *TEXT_KEYS)):
        return False
    several = len(start.lines) > 1 and start.lines[1].lstrip().startswith(b"{")
    return not several and all(isinstance(value, str | None) for value in row.values())


def looks_like_topics(start: Head) -> bool:
    """Whether the beginning of a file that is one JSON document is of topics."""
    text = b"\n".join(start.lines)
    if not text.lstrip().startswith(b"{"):
        keys = set(top_level_keys(text.lstrip()[1:]))
        return bool(
            keys.intersection(LIST_ID_KEYS)
            and keys.intersection(LIST_TEXT_KEYS)
            and not keys.intersection(_PASSAGE_KEYS)
        )
    keys = set(top_level_keys(text))
    if not _FIRST_TEXT.match(text) or keys.intersection((*ID_KEYS, *TEXT_KEYS, *_PASSAGE_KEYS)):
        return False
    # Any object of texts could be topics; their ids have digits, or the file's name tells.
    named = any(word in start.name.lower() for word in ("quer", "topic"))
    return named or all(any(c.isdigit() for c in key) for key in keys)


def json_topics(path: str | os.PathLike[str]) -> Iterator[tuple[int, Query]]:
    """(line, query) of a JSON document.

    Raises:
        ConversionError: with the line: bad JSON, a text that is none, an entry without id or text.
    """
    import orjson

    text = read_whole(path)
    try:
        # For its reasons, and because json takes NaN and halves of surrogate pairs.
        whole = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConversionError(
            path, error.lineno, f"not valid JSON: {error.msg} (column {error.colno})"
        ) from None
    if isinstance(whole, dict):
        return _pairs(path, text)
    if isinstance(whole, list):
        return _rows(path, text)
    raise ConversionError(path, 1, "neither {query_id: text} nor a list of JSON objects")


def _pairs(path: str | os.PathLike[str], text: str) -> Iterator[tuple[int, Query]]:
    key = None
    for line, value in _values(path, text):
        if key is None:
            key = value
            continue
        query_id, key = key, None
        if query_id in (*ID_KEYS, *TEXT_KEYS):
            raise ConversionError(
                path, line, f'"{query_id}" is a field, no query id; put each query on a line or all in a list'
            )
        if not query_id.strip():
            raise ConversionError(path, line, "a query without an id")
        if not isinstance(value, str) or not value.strip():
            raise ConversionError(path, line, f"query '{query_id}' has no text")
        yield line, Query(query_id, value)


def _rows(path: str | os.PathLike[str], text: str) -> Iterator[tuple[int, Query]]:
    for line, row in _values(path, text):
        if not isinstance(row, dict):
            raise ConversionError(path, line, "an entry of the list is no JSON object")
        query_id = an_id(path, line, row, LIST_ID_KEYS)
        yield line, Query(query_id, a_text(path, line, row, LIST_TEXT_KEYS, f"query '{query_id}'"))


def _values(path: str | os.PathLike[str], text: str) -> Iterator[tuple[int, Any]]:
    """(line, value) of what stands in the outermost brackets of valid JSON: entries, or keys and values."""
    decode = json.JSONDecoder().raw_decode
    line, counted = 1, 0
    place = _after_space(text, _after_space(text, 0) + 1)
    while text[place] not in "]}":
        line += text.count("\n", counted, place)
        counted = place
        try:
            value, place = decode(text, place)
        except RecursionError:
            raise ConversionError(path, line, "nested too deeply") from None
        yield line, value
        place = _after_space(text, place)
        if text[place] in ",:":
            place = _after_space(text, place + 1)


def _after_space(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place
