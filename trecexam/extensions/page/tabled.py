"""Tables of results for the page: layout of the report, links, sorting and search."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from trecexam.extensions.page.drawing import link, text
from trecexam.extensions.page.listing import Address, ListedRows, in_order
from trecexam.extensions.page.urls import Urls
from trecexam.results.table import Table
from trecexam.results.view import Column, View
from trecexam.scores.columns.measures.cover import NUGGET_SCORES

#: Function from a row's index to the HTML of a cell.
Draw = Callable[[int], Markup]
#: Kind of object in columns of ids.
_IDS = {"query_id": "query", "doc_id": "passage", "item_id": "item"}
#: The column of long texts: displayed shortened, and not sortable.
_TEXT = "text"


def listed_table(
    table: Table,
    address: Address,
    urls: Urls,
    sort: str = "",
    draw: Mapping[str, Draw] = MappingProxyType({}),
) -> tuple[ListedRows[int], View]:
    """Return the rows that match the address's `q`, in the order of its `sort`, and their cells.

    Args:
        sort: default order; "" for the order of the table.
        draw: as for `drawn`.
    """
    search_text = address.get("q").casefold()
    row_indices = [
        row_index
        for row_index, values in enumerate(table.rows)
        if any(search_text in value.casefold() for value in values if isinstance(value, str))
    ]
    keys = {name: _of(table, name) for name in table.header if name != _TEXT}
    rows = in_order(row_indices, address, {"": lambda row_index: row_index, **keys}, sort)
    return rows, drawn(table, urls, rows.rows, draw)


def drawn(
    table: Table,
    urls: Urls,
    row_indices: Sequence[int] | None = None,
    draw: Mapping[str, Draw] = MappingProxyType({}),
) -> View:
    """Return the cells of rows of a table, all without `row_indices`. Runs, queries and passages are links.

    Args:
        draw: column -> function for its cells.
    """
    row_indices = range(len(table.rows)) if row_indices is None else row_indices
    draws = {**_links(table, urls), **draw}
    short = {name: _heading(name) for name in table.header} | dict(table.layout.short)
    table = replace(table, layout=replace(table.layout, short=short))
    view = table.view(page=True, rows=row_indices)
    keys, rest = ([_drawn(each, row_indices, draws) for each in part] for part in (view.keys, view.rest))
    return view._replace(keys=tuple(keys), rest=tuple(rest))


def _drawn(column: Column, row_indices: Sequence[int], draws: Mapping[str, Draw]) -> Column:
    # A narrow screen has no room for a column of long texts.
    kind = "wide text" if column.name == _TEXT else column.kind
    draw = draws.get(column.name)
    values = column.values if draw is None else tuple(map(draw, row_indices))
    return replace(column, kind=kind, values=values)


def _links(table: Table, urls: Urls) -> dict[str, Draw]:
    value = {name: _of(table, name) for name in table.header}
    draws: dict[str, Draw] = {}
    if "run" in value:
        draws["run"] = lambda at: link(urls.run(value["run"](at)), value["run"](at))
    if "query_id" in value:
        query_id = value["query_id"]
        draws["query_id"] = lambda at: link(urls.query(query_id(at)), query_id(at))
        if "doc_id" in value:
            doc_id = value["doc_id"]
            draws["doc_id"] = lambda at: link(urls.passage(query_id(at), doc_id(at)), doc_id(at))
    if _TEXT in value:
        draws[_TEXT] = lambda at: text(value[_TEXT](at))
    return draws


def _heading(name: str) -> str:
    """Return a column's heading; measures keep their names."""
    bare = re.split("[: ]", name)[-1].partition("@")[0]
    if name in _IDS or not name.islower() or bare in NUGGET_SCORES:
        return _IDS.get(name, name)
    return name.replace("_", " ")


def _of(table: Table, name: str) -> Callable[[int], Any]:
    column = table.header.index(name)
    return lambda row_index: table.rows[row_index][column]
