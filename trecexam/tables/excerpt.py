"""Tables as a page shows them: so many rows, values short enough to read, and where the rest is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from trecexam.tables.table import Table, Value
from trecexam.tables.terminal import cut

#: Columns of text in a cell: of one that is read, of a code, of a name.
_WIDE = {"text": 160, "code": 80, "name": 40}
#: What columns are, by the names that the page has for them; the others are names.
KINDS = {"reason": "text", "item": "text", "why": "text", "item id": "code", "sha256": "code", "file": "text"}


@dataclass(frozen=True)
class Excerpt:
    """The first rows of a table.

    Attributes:
        header: the columns' names.
        numeric: for each column, whether it holds numbers.
        rows: texts.
        total: how many rows the whole table has.
        file: where they are, relative to the page.
    """

    header: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    file: str

    @property
    def kinds(self) -> Mapping[str, str]:
        """Which columns hold texts or codes."""
        return KINDS


def excerpt(table: Table, most: int, file: str, columns: Mapping[str, str] | None = None) -> Excerpt:
    """The first rows of these columns.

    Args:
        columns: those to show, in this order, with what the page calls them; None for all.
    """
    names = columns or dict(zip(table.header, table.header, strict=True))
    places = [table.header.index(name) for name in names]
    rows = [[row[place] for place in places] for row in table.rows[:most]]
    numeric = tuple(
        any(isinstance(row[n], int | float) for row in rows)
        and not any(isinstance(row[n], str) and row[n] for row in rows)
        for n in range(len(places))
    )
    widths = [_WIDE[KINDS.get(name, "name")] for name in names.values()]
    return Excerpt(
        tuple(names.values()),
        numeric,
        tuple(tuple(map(shown, row, widths)) for row in rows),
        len(table.rows),
        file,
    )


def shown(value: Value, width: int = 160) -> str:
    """A value as people read it: three decimals, thousands apart, long texts cut."""
    if value is None:
        return ""
    if isinstance(value, str):
        return cut(value, width, middle=True)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if math.isfinite(value) else ""
