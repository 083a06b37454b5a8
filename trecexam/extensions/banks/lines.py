"""A bank as JSON Lines, one item per line: what a line has, and how generated items get into a file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from converters.bank_lines import BankLine
from converters.records import Item
from trecexam.inputs.missing_banks import lines_of


def item_row(item: Item, query_text: str) -> dict[str, Any]:
    """Return the JSON object of one item, readable and editable."""
    row = {
        "query_id": item.query_id,
        "query_text": query_text,
        f"{item.kind}_id": item.item_id,
        item.kind: item.text,
        "gold_answers": list(item.gold_answers),
        "choices": dict(item.choices),
        "facet_id": item.facet_id,
        "importance": item.importance,
        "weight": item.weight,
        "retired": item.retired,
        "origin": None if item.origin is None else item.origin.row,
    }
    return {key: value for key, value in row.items() if value}


def row_line(row: Mapping[str, Any]) -> bytes:
    """Return the line of a JSON object."""
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def replaceable(line: BankLine, written: bytes, kind: str) -> Item | None:
    """Return the item of a line that a model wrote and nobody changed; None for other lines.

    Args:
        written: the line in the file.
    """
    if line.error is not None or len(line.items) != 1:
        return None
    (item,) = line.items
    if item.kind != kind or item.origin is None:
        return None
    text, importance = item.origin.text, item.origin.importance
    generated = Item(
        item.query_id, item.item_id, text, kind, (), item.facet_id, importance=importance, origin=item.origin
    )
    try:
        row = json.loads(written)
    except ValueError:
        return None
    # An answer key or a note of a person's is an edit, too.
    return item if row == item_row(generated, line.query_text) else None


def merged(
    content: bytes,
    dropped: Collection[int],
    new: Iterable[tuple[Item, str]],
    places: Mapping[str, int],
) -> bytes:
    """Return the file's content with items added; all other lines keep their bytes and order.

    Args:
        dropped: numbers of lines (from 1) that go.
        new: (item, its query's text), in their order.
        places: query_id -> number of the dropped line that its new items replace; all others go to the end.
    """
    lines = [b"", *lines_of(content)]
    if content and not content.endswith(b"\n"):
        lines[-1] += b"\n"
    for number in dropped:
        lines[number] = b""
    lines.append(b"")
    for item, query_text in new:
        lines[places.get(item.query_id, -1)] += row_line(item_row(item, query_text))
    return b"".join(lines)
