"""Tables of results for the page: layout of the report, links, sorting and search."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from trecexam.extensions.page.drawing import link, text
from trecexam.extensions.page.listing import Address, ListedRows, in_order
from trecexam.results.table import Table
from trecexam.results.view import Cell, Excerpt, PageColumn, excerpt
from trecexam.scores.cover import NUGGET_SCORES

#: What is drawn in a cell, by the row's place in the table.
Draw = Callable[[int], "Markup"]


@dataclass(frozen=True)
class Tabled:
    """A page of a table.

    Attributes:
        rows: places in the table.
        cells: those of each of the rows.
        name: the place of the column that says what a row is about.
    """

    columns: tuple[PageColumn, ...]
    rows: ListedRows[int]
    cells: tuple[tuple[Cell, ...], ...]
    name: int | None

    def with_drawn(self, heading: str, draw: Draw) -> Tabled:
        """Adds a column: before the first shortened column, or at the end."""
        kinds = [column.kind for column in self.columns]
        at = kinds.index(_BEGINNING) if _BEGINNING in kinds else len(kinds)
        cells = (
            (*row[:at], Cell(draw(row_index)), *row[at:])
            for row_index, row in zip(self.rows.rows, self.cells, strict=True)
        )
        columns = (*self.columns[:at], PageColumn(heading, "text"), *self.columns[at:])
        return replace(self, columns=columns, cells=tuple(cells))


#: What columns of ids are about.
_IDS = {"query_id": "query", "doc_id": "passage", "item_id": "item"}
#: The class of a column with beginnings of texts: a narrow screen has no room for it.
_BEGINNING = "wide text"


def tabled(
    table: Table,
    address: Address,
    sort: str = "",
    *,
    links: Callable[[str], str] | None = None,
    draw: Mapping[str, Draw] | None = None,
    beginnings: Collection[str] = (),
) -> Tabled:
    """The rows that contain `q`, in the order of `sort`, both from the address.

    Args:
        sort: where the address does not say; "" for the order of the table.
        links: gives the address of what a row is about, by its name.
        draw: column -> what is drawn in it.
        beginnings: columns of long texts, whose beginnings the page shows, and by which nobody sorts.
    """
    search_text = address.get("q").casefold()
    row_indices = [
        row_index
        for row_index, values in enumerate(table.rows)
        if any(search_text in value.casefold() for value in values if isinstance(value, str))
    ]
    keys = {name: _of(table, name) for name in table.header if name not in beginnings}
    rows = in_order(row_indices, address, {"": lambda row_index: row_index, **keys}, sort)
    excerpted = drawn(table, rows.rows, links=links, draw=draw, beginnings=beginnings)
    return Tabled(excerpted.columns, rows, excerpted.rows, excerpted.name)


def drawn(
    table: Table,
    row_indices: Sequence[int] | None = None,
    *,
    links: Callable[[str], str] | None = None,
    draw: Mapping[str, Draw] | None = None,
    beginnings: Collection[str] = (),
) -> Excerpt:
    """Draws rows of a table (all without `row_indices`); other arguments as in `tabled`."""
    row_indices = range(len(table.rows)) if row_indices is None else row_indices
    draws = {name: _of_text(table, name) for name in beginnings} | dict(draw or {})
    if links is not None:
        name = next(key for key in table.layout.keys if key in table.header)
        draws.setdefault(name, _linked(table, name, links))
    short = {name: _heading(name) for name in table.header} | dict(table.layout.short)
    table = replace(table, layout=replace(table.layout, short=short))
    excerpted = excerpt(table, len(table.rows), whole=True, places=row_indices)
    columns = [
        column._replace(kind=_BEGINNING) if column.name in beginnings else column
        for column in excerpted.columns
    ]
    drawers = [draws.get(column.name) for column in columns]
    rows = (
        tuple(map(_cell, row, drawers, [row_index] * len(row)))
        for row_index, row in zip(row_indices, excerpted.rows, strict=True)
    )
    return replace(excerpted, columns=tuple(columns), rows=tuple(rows))


def _heading(name: str) -> str:
    """Return a column's heading; measures keep their names."""
    bare = re.split("[: ]", name)[-1].partition("@")[0]
    if name in _IDS or not name.islower() or bare in NUGGET_SCORES:
        return _IDS.get(name, name)
    return name.replace("_", " ")


def _cell(cell: Cell, draw: Draw | None, row_index: int) -> Cell:
    return cell if draw is None else Cell(draw(row_index))


def _of(table: Table, name: str) -> Callable[[int], Any]:
    column = table.header.index(name)
    return lambda row_index: table.rows[row_index][column]


def _of_text(table: Table, name: str) -> Draw:
    value = _of(table, name)
    return lambda row_index: text(value(row_index))


def _linked(table: Table, name: str, links: Callable[[str], str]) -> Draw:
    value = _of(table, name)
    return lambda row_index: link(links(str(value(row_index))), str(value(row_index)))
