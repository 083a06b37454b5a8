"""Tables as a page shows them: so many rows, values short enough to read, and where the rest is."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trecexam.tables.table import NO_VALUE, Layout, Table, Value, by_column
from trecexam.tables.terminal import cut
from trecexam.tables.text import number

#: Letters in a cell: of a text that is read, of a code, of a name.
_WIDE = {"text": 160, "code": 80, "name": 40}
_WHOLE = 1_000_000
#: What columns hold, by their names; the others hold names.
_KINDS = {
    **dict.fromkeys(("query and passage", "reason", "text", "why", "note", "file"), "text"),
    **dict.fromkeys(("item_id", "sha256"), "code"),
}


class Column(NamedTuple):
    """A column of an excerpt: `kind` is "n" for numbers, else what its texts are: "text", "code", "name".

    `name` is the table's; "" for ranks.
    """

    heading: str
    kind: str
    name: str = ""


class Cell(NamedTuple):
    """A value, and what is below it: its interval, its standard error."""

    text: str
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class Excerpt:
    """The first rows of a table.

    Attributes:
        total: how many rows the whole table has.
        file: where they are, relative to the page; "" for nowhere.
        name: the place of the column that says what a row is about; None where no column does.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    file: str
    caption: str
    name: int | None = None


def excerpt(
    table: Table,
    most: int,
    file: str = "",
    *,
    whole: bool = False,
    places: Sequence[int] | None = None,
    bare: Collection[str] = (),
) -> Excerpt:
    """The first rows as the table's layout says: its order, its short names, its ranks.

    Of a column `NAME`, the columns `NAME.low` and `NAME.high`, `NAME.stderr` and all other `NAME.WHAT` stand
    below the values. Columns without any value are left out.

    Args:
        whole: texts are not cut.
        places: of the rows, in their order; None for the first. Columns are those that have values in all.
        bare: columns whose cells are left empty, for who draws them.
    """
    layout, total = table.layout, len(table.rows)
    if places is None:
        places = range(min(most, len(table.rows)))
        table = replace(table, rows=table.rows[:most])
    values = dict(by_column(table))
    below: dict[str, list[str]] = {}
    for name in values:
        of = name.rpartition(".")[0]
        if of in values:
            below.setdefault(of, []).append(name)
    behind = {name for names in below.values() for name in names}
    columns, cells = [], []
    if layout.ranks:
        columns.append(Column("#", "n"))
        ranks = (layout.ranks[row] for row in places)
        cells.append([Cell(NO_VALUE if rank is None else str(rank)) for rank in ranks])
    shown_names = list(_shown_names(values, layout, behind))
    for name in shown_names:
        column = values[name]
        numeric = any(isinstance(value, int | float) for value in column)
        numeric &= not any(isinstance(value, str) and value for value in column)
        kind = "n" if numeric else _KINDS.get(name, "name")
        columns.append(Column(layout.short.get(name, name), kind, name))
        if name in bare:
            cells.append([Cell("")] * len(places))
            continue
        added = (_below(name, {each: values[each][row] for each in below.get(name, ())}) for row in places)
        width = _WHOLE if whole else _WIDE.get(kind, 160)
        texts = (shown(column[row], width) for row in places)
        empty = NO_VALUE if kind == "n" else ""
        cells.append([Cell(text or empty, tuple(of)) for text, of in zip(texts, added, strict=True)])
    key = next((name for name in layout.keys if name in shown_names), None)
    return Excerpt(
        tuple(columns),
        tuple(zip(*cells, strict=True)),
        total,
        file,
        table.caption,
        None if key is None else shown_names.index(key) + bool(layout.ranks),
    )


def _shown_names(values: dict[str, Sequence[Value]], layout: Layout, behind: set[str]) -> Iterator[str]:
    """The columns in the order in which people see them."""
    rest = [
        name
        for name in dict.fromkeys((*layout.first, *values))
        if name in values and name not in {*layout.keys, *layout.without, *behind}
    ]
    rows = any(map(len, values.values()))
    rest = [name for name in rest if not rows or any(shown(value) for value in values[name])]
    yield from (name for name in layout.keys if name in values and name not in layout.without)
    yield from rest[: layout.most]


def _below(name: str, values: dict[str, Value]) -> Iterator[str]:
    low, high = values.pop(f"{name}.low", None), values.pop(f"{name}.high", None)
    if shown(low) and shown(high):
        yield f"{shown(low)} to {shown(high)}"
    error = values.pop(f"{name}.stderr", None)
    if shown(error):
        yield f"± {shown(error)}"
    yield from filter(None, (shown(value, _WHOLE) for value in values.values()))


def shown(value: Value, width: int = 160) -> str:
    """Return a value as people read it: three digits of a float above 1, thousands apart, long texts cut."""
    if value is None:
        return ""
    if isinstance(value, str):
        return cut(value, width, middle=True)
    if isinstance(value, int):
        return f"{value:,}"
    if not math.isfinite(value):
        return ""
    return number(value)
