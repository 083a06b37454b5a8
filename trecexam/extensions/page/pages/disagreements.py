"""Disagreements of the grader with official judgments: passages, and items that discriminate badly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup
from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.drawing import link
from trecexam.extensions.page.listing import Address, ListedRows, listed
from trecexam.extensions.page.rendering import render, view_of
from trecexam.extensions.page.tabled import Draw, tabled

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from starlette.requests import Request
    from starlette.responses import Response

    from trecexam.extensions.page.view import JudgedTable, View
    from trecexam.tables.table import Table


@dataclass(frozen=True)
class Matrix:
    """Passages by label (rows) and official judgment (columns), the highest first."""

    labels: tuple[int, ...]
    judgments: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Disagreement:
    """A passage with label and official judgment."""

    query_id: str
    doc_id: str
    text: str
    label: int
    judgment: int
    runs: int


def disagreements(request: Request) -> Response:
    """The matrix of labels and judgments, and the passages of a part of it; or the items."""
    view, address = view_of(request), Address.of(request)
    if address.get("show", "items"):
        return _items(request, view, address)
    table = view.judged
    if table is None:
        return render(request, "disagreements.html", matrix=None, show="passages", rows=None, totals=(0, 0))
    kinds = _kinds(view, table)
    rows = _listed(view, table, _selected(view, table, kinds, address), address)
    return render(
        request,
        "disagreements.html",
        matrix=matrix(table),
        show="passages",
        rows=rows,
        totals=tuple(int((kinds == kind).sum()) for kind in (1, 2)),
    )


def matrix(table: JudgedTable) -> Matrix:
    """The number of passages for each label and judgment."""
    rows = tuple(int(value) for value in np.unique(table.label)[::-1])
    columns = tuple(int(value) for value in np.unique(table.judgment)[::-1])
    counts = tuple(
        tuple(int(((table.label == row) & (table.judgment == column)).sum()) for column in columns)
        for row in rows
    )
    return Matrix(rows, columns, counts)


def _kinds(view: View, table: JudgedTable) -> NDArray[np.int8]:
    """1 if only the judges, 2 if only the grader finds the passage relevant, else 0."""
    automatic = table.label >= view.settings.least
    judged = table.judgment >= view.settings.min_relevant
    return np.where(judged & ~automatic, 1, np.where(automatic & ~judged, 2, 0)).astype(np.int8)


def _selected(view: View, table: JudgedTable, kinds: NDArray[np.int8], address: Address) -> NDArray[np.int64]:
    """The rows of the table that an address selects, in its order."""
    label, judgment = address.number("label"), address.number("judgment")
    if label is not None or judgment is not None:
        chosen = np.ones(len(table.label), bool)
        if label is not None:
            chosen &= table.label == label
        if judgment is not None:
            chosen &= table.judgment == judgment
    else:
        kind = address.get("kind", "missed", "spurious")
        chosen = {"missed": kinds == 1, "spurious": kinds == 2}.get(kind, kinds > 0)
    search_text = address.get("q").casefold()
    if search_text:
        queries = np.array(
            [search_text in f"{head.query_id}\t{head.text}".casefold() for head in view.heads.values()], bool
        )
        chosen &= queries[table.query]
    rows = chosen.nonzero()[0]
    # How far the two are apart, each on its own scale from where on it counts; then what most runs have.
    gap = np.abs((table.judgment - view.settings.min_relevant) - (table.label - view.settings.least))[rows]
    selected: NDArray[np.int64] = rows[
        np.lexsort((table.doc[rows], table.query[rows], -table.runs[rows], -gap))
    ]
    return selected


def _listed(
    view: View, table: JudgedTable, table_rows: NDArray[np.int64], address: Address
) -> ListedRows[Disagreement]:
    # Places first: only the passages of this page are opened.
    page = listed(table_rows.tolist(), address)
    rows = []
    for at in page.rows:
        state = view.query(view.query_ids[int(table.query[at])])
        assert state is not None
        passage_index = int(table.doc[at])
        rows.append(
            Disagreement(
                state.query_id,
                state.doc_ids[passage_index],
                state.texts[passage_index] or "",
                int(table.label[at]),
                int(table.judgment[at]),
                int(table.runs[at]),
            )
        )
    return ListedRows(rows, page.total, page.first, page.page, page.pages, page.size)


def _items(request: Request, view: View, address: Address) -> Response:
    table = None
    if view.items is not None:
        queries, ids, texts = (view.items[name] for name in ("query_id", "item_id", "item"))
        draw: dict[str, Draw] = {
            "item_id": lambda at: link(urls.item(queries[at], ids[at]), texts[at]),
            **{f"{side}_reached": _share(view.items, side) for side in ("relevant", "nonrelevant")},
        }
        # What people see first is enough here; `verify spurious` has the other counts.
        layout_full = view.items.layout
        without, short = (*layout_full.without, "item"), {**layout_full.short, "item_id": "item"}
        layout = replace(layout_full, most=len(layout_full.first) - 1, without=without, short=short)
        table = tabled(replace(view.items, layout=layout), address, draw=draw)
    return render(request, "disagreements_items.html", show="items", table=table)


def _share(items: Table, side: str) -> Draw:
    reached, all_of = items[f"{side}_reached"], items[side]
    return lambda at: Markup(f"{reached[at]:,} of {all_of[at]:,}")


ROUTES = [Route("/disagreements", disagreements)]
