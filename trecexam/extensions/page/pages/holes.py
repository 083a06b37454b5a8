"""Missing judgments and grades in the runs' first ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import render, view_of
from trecexam.extensions.page.tabled import tabled
from trecexam.tables.table import Layout, Table

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from trecexam.extensions.page.view import View


def holes(request: Request) -> Response:
    """Every run's holes in its first ranks."""
    view = view_of(request)
    first = f"-{_first(view)}"
    table = tabled(_table(view), Address.of(request), first, links=lambda run: urls.run(run, sort=first))
    return render(request, "holes.html", table=table, depth=view.holes.depth)


def _first(view: View) -> str:
    """The first missing passages."""
    return "ungraded" if view.holes.unjudged is None else "unjudged"


def _table(view: View) -> Table:
    """Sums over all queries; `judged` is the mean over them, as `trecexam holes` has it."""
    counts, n = view.holes, len(view.runs)
    retrieved, ungraded = counts.retrieved.sum(axis=1).tolist(), counts.ungraded.sum(axis=1).tolist()
    unjudged, judged = [None] * n, [None] * n
    if counts.unjudged is not None:
        unjudged = counts.unjudged.sum(axis=1).tolist()
        # A query without results counts 0.
        met = (counts.retrieved - counts.unjudged) / np.maximum(counts.retrieved, 1)
        judged = (met.sum(axis=1) / max(met.shape[1], 1)).tolist()
    columns = view.runs, retrieved, unjudged, judged, ungraded
    header = ("run", "retrieved", "unjudged", "judged", "ungraded")
    return Table(header, tuple(zip(*columns, strict=True)), layout=Layout(("run",)))


ROUTES = [Route("/holes", holes)]
