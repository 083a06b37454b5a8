"""A bank as JSON Lines, one item per line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from converters.records import Item


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
