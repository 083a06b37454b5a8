"""A generated bank as JSON Lines, one item per line: adds items, and keeps those that people edited."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from converters.bank_lines import BankLine
from converters.records import Item
from trecexam.inputs.missing_banks import lines_of


def item_line(item: Item, query_text: str) -> bytes:
    """A line that holds one item, readable and editable."""
    row = {
        "query_id": item.query_id,
        "query_text": query_text,
        f"{item.kind}_id": item.item_id,
        item.kind: item.text,
        **({} if item.facet_id is None else {"facet_id": item.facet_id}),
        **({"importance": item.importance} if item.importance else {}),
        "origin": None if item.origin is None else item.origin.row,
    }
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def replaceable(line: BankLine, written: bytes, kind: str) -> Item | None:
    """The item of a line that a model wrote and nobody changed; None for other lines.

    Args:
        written: the line in the file.
    """
    if line.error is not None or len(line.items) != 1:
        return None
    (item,) = line.items
    if item.kind != kind or item.origin is None:
        return None
    if (item.origin.text, item.origin.importance) != (item.text, item.importance):
        return None
    try:
        row = json.loads(written)
    except ValueError:
        return None
    # An answer key or a note of a person's is an edit, too.
    return item if row == json.loads(item_line(item, line.query_text)) else None


def merged(
    content: bytes,
    dropped: Collection[int],
    new: Iterable[tuple[Item, str]],
    insert_before: Mapping[str, int],
) -> bytes:
    """The file's content with items added; all other lines keep their bytes and order.

    Args:
        dropped: numbers of lines (from 1) that go.
        new: (item, its query's text), in their order.
        insert_before: query_id -> number of the line before which its new items go; all others go to the end.
    """
    lines = lines_of(content)
    if lines and not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    before: dict[int, list[bytes]] = {}
    end: list[bytes] = []
    for item, query_text in new:
        line_number = insert_before.get(item.query_id)
        target = end if line_number is None else before.setdefault(line_number, [])
        target.append(item_line(item, query_text))
    return b"".join(_all(lines, set(dropped), before)) + b"".join(end)


def _all(lines: Sequence[bytes], dropped: set[int], before: Mapping[int, Sequence[bytes]]) -> Iterable[bytes]:
    for number, line in enumerate(lines, 1):
        yield from before.get(number, ())
        if number not in dropped:
            yield line
