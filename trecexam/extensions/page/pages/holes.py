"""Missing judgments and grades in the runs' first ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    """Sums over all queries; `judged` is the share of what a run retrieved."""
    counts = view.holes
    n = len(view.runs)
    retrieved, ungraded = counts.retrieved.sum(axis=1).tolist(), counts.ungraded.sum(axis=1).tolist()
    unjudged = [None] * n if counts.unjudged is None else counts.unjudged.sum(axis=1).tolist()
    judged = [
        None if no is None or not all_ else 1 - no / all_
        for no, all_ in zip(unjudged, retrieved, strict=True)
    ]
    columns = view.runs, retrieved, unjudged, judged, ungraded
    header = ("run", "retrieved", "unjudged", "judged", "ungraded")
    return Table(header, tuple(zip(*columns, strict=True)), layout=Layout(("run",)))


ROUTES = [Route("/holes", holes)]
