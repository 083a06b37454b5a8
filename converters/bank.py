"""Test banks: exam questions and nuggets, in the two forms of the Rubric workbench.

A line a query: `query_id, query_text, questions|items: [{question_id|nugget_id, question_text|nugget_text,
gold_answers?, facet_id?}]`; or a line a question: `query_id, qid, question, facet_id, choices, correct,
correctKey`. Where an id is missing it is `query_id/md5(text)`.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from converters.errors import ConversionError
from converters.fields import a_text, an_id
from converters.lines import Head, first_json, iter_objects
from converters.records import Item, Query
from converters.registry import Format

EXAMPLE = '{"query_id": "q1", "questions": [{"question_id": "q1/1", "question_text": "What ...?"}]}'
_ID_KEYS = {"question": ("question_id", "item_id", "id"), "nugget": ("nugget_id", "item_id", "id")}
_TEXT_KEYS = {"question": ("question_text", "text"), "nugget": ("nugget_text", "text")}
Path = str | os.PathLike[str]


def read_bank(path: Path, on_error: Callable[[ConversionError], None] | None = None) -> Iterator[Item]:
    """The items of a bank, in the file's order.

    Published banks hold questions of nothing but blanks, which their generator left behind. Nobody can
    answer them, so they are left out.

    Args:
        on_error: takes an error for each blank item; None logs how many there were, as a warning.

    Raises:
        ConversionError: with the line: bad JSON, no query id, no items, an item without text, the same
            item id twice, an empty file.
    """
    seen: dict[str, int] = {}
    blank: list[ConversionError] = []
    for number, row in iter_objects(path):
        query_id = an_id(path, number, row, ("query_id",))
        for item in _items(path, number, row, query_id):
            if not item.text.strip():
                blank.append(
                    ConversionError(path, number, f"an item of query '{query_id}' is blank: left out")
                )
                continue
            if item.item_id in seen:
                raise ConversionError(
                    path,
                    number,
                    f"item id '{item.item_id}' stands twice (first on line {seen[item.item_id]}); "
                    "ids must differ",
                )
            seen[item.item_id] = number
            yield item
    if on_error is not None:
        for error in blank:
            on_error(error)
    elif blank:
        logging.getLogger("converters").warning("%s (%d such lines)", blank[0], len(blank))


def read_bank_queries(path: Path) -> Iterator[Query]:
    """The queries that a bank names with their texts, each once.

    Raises:
        ConversionError: as `read_bank`.
    """
    seen: set[str] = set()
    for number, row in iter_objects(path):
        query_id = an_id(path, number, row, ("query_id",))
        text = row.get("query_text")
        if isinstance(text, str) and text.strip() and query_id not in seen:
            seen.add(query_id)
            yield Query(query_id, text)


def write_bank(items: Iterable[Item], file: BinaryIO) -> None:
    """Writes a line a query, in order of first appearance."""
    import orjson

    by_query: dict[str, list[Item]] = {}
    for item in items:
        by_query.setdefault(item.query_id, []).append(item)
    for query_id, group in by_query.items():
        rows = [
            {
                f"{item.kind}_id": item.item_id,
                f"{item.kind}_text": item.text,
                "gold_answers": list(item.gold_answers),
                "facet_id": item.facet_id,
                "choices": [list(choice) for choice in item.choices],
            }
            for item in group
        ]
        file.write(orjson.dumps({"query_id": query_id, "items": rows}) + b"\n")


def _items(path: Path, number: int, row: Mapping[str, Any], query_id: str) -> Iterator[Item]:
    listed = row.get("questions") if row.get("questions") is not None else row.get("items")
    if listed is None:
        yield _single(path, number, row, query_id)
        return
    if not isinstance(listed, list) or not listed:
        raise ConversionError(path, number, f"query '{query_id}' has no questions or items")
    for entry in listed:
        if not isinstance(entry, dict):
            raise ConversionError(path, number, f"an item of query '{query_id}' is no JSON object")
        kind = "nugget" if "nugget_text" in entry or "nugget_id" in entry else "question"
        kind = entry["kind"] if entry.get("kind") in _ID_KEYS else kind
        text = a_text(path, number, entry, _TEXT_KEYS[kind], f"an item of query '{query_id}'", blank=True)
        facet = entry.get("facet_id") if entry.get("facet_id") is not None else row.get("facet_id")
        yield Item(
            query_id,
            _item_id(path, number, entry, _ID_KEYS[kind], query_id, text),
            text,
            kind,
            _answers(path, number, entry.get("gold_answers")),
            _facet(path, number, facet),
            _choices(path, number, entry.get("choices")),
        )


def _single(path: Path, number: int, row: Mapping[str, Any], query_id: str) -> Item:
    what = f"a question of query '{query_id}'"
    text = a_text(path, number, row, ("question", "question_text"), what, blank=True)
    return Item(
        query_id,
        _item_id(path, number, row, ("qid", "question_id"), query_id, text),
        text,
        "question",
        _answers(path, number, row.get("correct")),
        _facet(path, number, row.get("facet_id")),
        _choices(path, number, row.get("choices")),
    )


def _item_id(
    path: Path, number: int, row: Mapping[str, Any], keys: tuple[str, ...], query_id: str, text: str
) -> str:
    if all(row.get(key) is None for key in keys):
        return f"{query_id}/{hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()}"
    return an_id(path, number, row, keys)


def _answers(path: Path, number: int, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(v, str) for v in values):
        raise ConversionError(path, number, f"the gold answer is no text: {value!r}"[:200])
    return tuple(values)


def _facet(path: Path, number: int, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ConversionError(path, number, f'"facet_id" is no id: {value!r}'[:200])


def _choices(path: Path, number: int, value: Any) -> tuple[tuple[str, str], ...]:
    if value is None:
        return ()
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [
            tuple(v) if isinstance(v, list) else (chr(ord("A") + i), v) for i, v in enumerate(value[:26])
        ]
    else:
        pairs = [("", None)]
    if not all(len(pair) == 2 and all(isinstance(part, str) for part in pair) for pair in pairs):
        raise ConversionError(path, number, '"choices" is neither {letter: text} nor a list of texts')
    return tuple(pairs)


def _sniff(start: Head) -> bool:
    row = first_json(start)
    if row is None:
        # A line of more than 64 KiB is cut; its keys come first all the same.
        line = start.lines[0]
        return (
            line.lstrip().startswith(b"{")
            and b'"query_id"' in line
            and (b'"questions"' in line or b'"items"' in line)
        )
    if not isinstance(row, dict) or "query_id" not in row:
        return False
    return "questions" in row or "items" in row or "question" in row or "question_text" in row


FORMAT = Format("bank", (".jsonl",), "test bank, JSONL", EXAMPLE, _sniff, read_bank, write_bank)
