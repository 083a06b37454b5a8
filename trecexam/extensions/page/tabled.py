"""A result's table as the page shows it: as the report does, and ordered, searched and had as a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from trecexam.extensions.page.listing import Address, ListedRows, in_order
from trecexam.tables.excerpt import Cell, Column, excerpt

if TYPE_CHECKING:
    from trecexam.tables.table import Table, Value


class TableLine(NamedTuple):
    """A row: its place in the table, its cells, all its values, and the one that says what it is about."""

    place: int
    cells: tuple[Cell, ...]
    values: tuple[Value, ...]
    name: str


@dataclass(frozen=True)
class Tabled:
    """A page of a table; `name` is the place of the column that says what a row is about."""

    columns: tuple[Column, ...]
    rows: ListedRows[TableLine]
    name: int | None


def tabled(table: Table, address: Address, sort: str = "") -> Tabled:
    """The rows that an address asks for: in which a text has `q`, in the order of `sort`.

    As a file it has all columns of the table.

    Args:
        sort: where the address does not say; "" for the order of the table.
    """
    shown = excerpt(table, len(table.rows), whole=True)
    places = {name: place for place, name in enumerate(table.header)}
    name_at = 0 if shown.name is None else places[shown.columns[shown.name].name]
    search_text = address.get("q").casefold()
    lines = [
        TableLine(place, cells, values, str(values[name_at]))
        for place, (cells, values) in enumerate(zip(shown.rows, table.rows, strict=True))
        if any(search_text in value.casefold() for value in values if isinstance(value, str))
    ]
    files = {name: _value(place) for name, place in places.items()}
    rows = in_order(lines, address, {"": lambda line: line.place, **files}, sort, files)
    return Tabled(shown.columns, rows, shown.name)


def _value(place: int) -> Callable[[TableLine], Any]:
    return lambda line: line.values[place]
