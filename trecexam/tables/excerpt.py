"""Tables as a page shows them: so many rows, values short enough to read, and where the rest is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trecexam.tables.terminal import cut
from trecexam.tables.text import number
from trecexam.tables.view import NO_VALUE, Rows, Value, by_column, is_numeric

#: Letters in a cell: of a text that is read, of a code, of a name; and of a text that is not cut.
_WIDE = {"text": 160, "code": 80, "name": 40, "n": 160}
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
    table: Rows,
    most: int,
    file: str = "",
    *,
    whole: bool = False,
    places: Sequence[int] | None = None,
) -> Excerpt:
    """Return the first rows as the table's layout says: its order, its short names, its ranks.

    Of a column `NAME`, the columns `NAME.low` and `NAME.high`, `NAME.stderr` and all other `NAME.WHAT` stand
    below the values. Columns without any value are left out.

    Args:
        whole: texts are not cut.
        places: of the rows, in their order; None for the first. Columns are those that have values in all.
    """
    layout = table.layout
    last = len(table.rows) if places is not None else min(most, len(table.rows))
    values = dict(by_column(replace(table, rows=table.rows[:last])))
    places = range(last) if places is None else places
    of = {name: name.rpartition(".")[0] for name in values}
    keys = [name for name in layout.keys if name in values and name not in layout.without]
    rest = [
        name
        for name in dict.fromkeys((*layout.first, *values))
        if name in values and name not in {*keys, *layout.keys, *layout.without} and of[name] not in values
        if not last or any(map(shown, values[name]))
    ]
    columns, cells = [], []
    if layout.ranks:
        columns.append(Column("#", "n"))
        ranks = (layout.ranks[place] for place in places)
        cells.append([Cell(NO_VALUE if rank is None else str(rank)) for rank in ranks])
    for name in (*keys, *rest[: layout.most]):
        kind = "n" if is_numeric(values[name]) else _KINDS.get(name, "name")
        columns.append(Column(layout.short.get(name, name), kind, name))
        width, empty = _WHOLE if whole else _WIDE[kind], NO_VALUE if kind == "n" else ""
        below = [each for each in values if of[each] == name]
        cells.append(
            [
                Cell(
                    shown(values[name][place], width) or empty,
                    tuple(_below(name, {each: values[each][place] for each in below})),
                )
                for place in places
            ]
        )
    name_at = int(bool(layout.ranks)) if keys else None
    rows = tuple(zip(*cells, strict=True))
    return Excerpt(tuple(columns), rows, len(table.rows), file, table.caption, name_at)


def _below(name: str, values: Mapping[str, Value]) -> Iterator[str]:
    low, high, error = (shown(values.get(f"{name}.{end}")) for end in ("low", "high", "stderr"))
    if low and high:
        yield f"{low} to {high}"
    if error:
        yield f"± {error}"
    for each, value in values.items():
        if not each.endswith((".low", ".high", ".stderr")) and (text := shown(value, _WHOLE)):
            yield text


def shown(value: Value, width: int = 160) -> str:
    """Return a value as people read it: three digits of a float above 1, thousands apart, long texts cut."""
    if value is None:
        return ""
    if isinstance(value, str):
        return cut(value, width, middle=True)
    if isinstance(value, int):
        return f"{value:,}"
    return number(value) if math.isfinite(value) else ""
