"""Texts of queries, items and passages in place of their ids, in tables of the report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment

_IDS = ("query_id", "doc_id", "item_id")
#: The column with the query; the report shows item and passage below the query.
_TEXTS = "query and passage"


def with_texts(track: Assessment, table: Table) -> Table:
    """Replace the ids in the rows of a table by the texts of query, item and passage."""
    others = [name for name in table.header if name not in _IDS]
    rows = []
    for row in table:
        query_id, doc_id, item_id = (str(row.get(name) or "") for name in _IDS)
        query = track.query_texts.get(query_id)
        items = (*track.bank.items.get(query_id, ()), *track.bank.retired.get(query_id, ()))
        item = next((each.text for each in items if each.item_id == item_id), None)
        texts = (
            _line(query_id, query),
            _line(item_id, item) if item != query else "",
            _line(doc_id, track.texts.get(doc_id)),
        )
        rows.append((*texts, *(row[name] for name in others)))
    header = (_TEXTS, f"{_TEXTS}.item", f"{_TEXTS}.passage", *others)
    return replace(table, header=header, rows=tuple(rows), layout=replace(table.layout, keys=(_TEXTS,)))


def _line(name: str, text: str | None) -> str:
    return f"{name}: {text}" if text else name
