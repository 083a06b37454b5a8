"""Tables as a page shows them: so many rows, values short enough to read, and where the rest is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from trecexam.results.terminal import cut
from trecexam.results.view import NO_VALUE, Rows, Value, by_column, view

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
    layout, total = table.layout, len(table.rows)
    if places is None:
        table = replace(table, rows=table.rows[:most])
        places = range(len(table.rows))
    page = view(table, places=places, whole=_whole)
    values = dict(by_column(table))
    below = {column.name for column in page.rest if column.name.startswith(f"{column.of}.")}
    rest = [
        column
        for column in page.rest
        if column.name not in below and (not table.rows or any(map(_exists, values[column.name])))
    ]
    columns: list[Column] = []
    cells: list[list[Cell]] = []
    for column in (*page.keys, *rest[: layout.most]):
        is_rank = layout.ranks and not columns
        kind = "n" if column.numeric else _KINDS.get(column.name, "name")
        columns.append(Column("#", kind) if is_rank else Column(column.heading, kind, column.name))
        width, empty = _WHOLE if whole else _WIDE[kind], NO_VALUE if kind == "n" else ""
        texts = [cut(text, width, middle=True) or empty for text in column.values]
        more = [each.values for each in page.rest if each.name in below and each.of == column.name]
        spread = map(_spread, column.spread or [()] * len(texts))
        cells.append(
            [Cell(text, tuple(filter(None, of))) for text, *of in zip(texts, spread, *more, strict=True)]
        )
    name_at = int(bool(layout.ranks)) if set(layout.keys) & {column.name for column in page.keys} else None
    return Excerpt(tuple(columns), tuple(zip(*cells, strict=True)), total, file, table.caption, name_at)


def _whole(value: int) -> str:
    return str(value) if isinstance(value, bool) else f"{value:,}"


def _spread(ends: tuple[str, ...]) -> str:
    return f"± {ends[0]}" if len(ends) == 1 else " to ".join(ends)


def _exists(value: Value) -> bool:
    return value is not None and value != "" and not (isinstance(value, float) and not math.isfinite(value))
