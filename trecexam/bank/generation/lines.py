"""A generated bank as lines of JSON, an item each: new ones are added, what people made of others stays."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from converters.bank import BankLine
from converters.records import Item


def item_line(item: Item, query_text: str) -> bytes:
    """A line that holds one item, readable and editable."""
    row = {
        "query_id": item.query_id,
        "query_text": query_text,
        f"{item.kind}_id": item.item_id,
        item.kind: item.text,
        **({} if item.facet_id is None else {"facet_id": item.facet_id}),
        "origin": None if item.origin is None else item.origin._asdict(),
    }
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def replaceable(line: BankLine, kind: str) -> Item | None:
    """The one item of a line, where it is as a model wrote it: not edited, not retired, not a person's."""
    if line.error is not None or len(line.items) != 1:
        return None
    (item,) = line.items
    untouched = item.origin is not None and item.origin.text == item.text
    return item if item.kind == kind and untouched and not item.retired else None


def merged(
    content: bytes, dropped: Collection[int], new: Iterable[tuple[Item, str]], places: Mapping[str, int]
) -> bytes:
    """The file's content with items added. What stays, stays byte for byte, in its order.

    Args:
        dropped: numbers of lines (from 1) that go.
        new: (item, its query's text), in their order.
        places: query_id -> the number of the line before which its new items go; all others go to the end.
    """
    lines = re.findall(rb"[^\n]*\n|[^\n]+", content)
    if lines and not lines[-1].endswith(b"\n"):
        lines[-1] += b"\n"
    before: dict[int, list[bytes]] = {}
    end: list[bytes] = []
    for item, query_text in new:
        place = places.get(item.query_id)
        target = end if place is None else before.setdefault(place, [])
        target.append(item_line(item, query_text))
    return b"".join(_all(lines, set(dropped), before)) + b"".join(end)


def _all(lines: Sequence[bytes], dropped: set[int], before: Mapping[int, Sequence[bytes]]) -> Iterable[bytes]:
    for number, line in enumerate(lines, 1):
        yield from before.get(number, ())
        if number not in dropped:
            yield line
