"""Passages that the grader and the official judgments disagree on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page.gather import JudgedPassages, judged_passages
from trecexam.extensions.page.listing import Address, listed
from trecexam.extensions.page.rendering import live_of, render, view_of

if TYPE_CHECKING:
    from trecexam.extensions.page.view import View


@dataclass(frozen=True)
class Matrix:
    """Passages by label (rows) and official judgment (columns), the highest first."""

    labels: tuple[int, ...]
    judgments: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]


def disagreements(request: Request) -> Response:
    """The matrix of labels and judgments, and the passages of a part of it."""
    view, address = view_of(request), Address.of(request)
    table = live_of(request).call(view.own, judged_passages)
    if table is None:
        return render(request, "disagreements.html", matrix=None, rows=None, totals=(0, 0))
    kinds = _kinds(view, table)
    selected = _selected(view, table, kinds, address)
    return render(
        request,
        "disagreements.html",
        judged=table,
        query_ids=tuple(view.queries),
        matrix=matrix(table),
        rows=listed(selected.tolist(), address),
        totals=tuple(int((kinds == kind).sum()) for kind in (1, 2)),
    )


def matrix(table: JudgedPassages) -> Matrix:
    """The number of passages for each label and judgment."""
    rows = tuple(int(value) for value in np.unique(table.label)[::-1])
    columns = tuple(int(value) for value in np.unique(table.judgment)[::-1])
    counts = tuple(
        tuple(int(((table.label == row) & (table.judgment == column)).sum()) for column in columns)
        for row in rows
    )
    return Matrix(rows, columns, counts)


def _kinds(view: View, table: JudgedPassages) -> NDArray[np.int8]:
    """1 if only the judges, 2 if only the grader finds the passage relevant, else 0."""
    automatic = table.label >= view.settings.least
    judged = table.judgment >= view.settings.min_relevant
    return np.where(judged & ~automatic, 1, np.where(automatic & ~judged, 2, 0)).astype(np.int8)


def _selected(
    view: View, table: JudgedPassages, kinds: NDArray[np.int8], address: Address
) -> NDArray[np.int64]:
    """The rows of the table that an address selects, those furthest apart first."""
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
        queries = np.array([search_text in "\t".join(pair).casefold() for pair in view.queries.items()], bool)
        chosen &= queries[table.query]
    rows = chosen.nonzero()[0]
    # How far the two are apart, each on its own scale from where on it counts; then what most runs have.
    gap = np.abs((table.judgment - view.settings.min_relevant) - (table.label - view.settings.least))[rows]
    selected: NDArray[np.int64] = rows[
        np.lexsort((table.doc[rows], table.query[rows], -table.runs[rows], -gap))
    ]
    return selected


ROUTES = [Route("/disagreements", disagreements)]
