"""What is being graded: how far, how quickly, what it cost, what failed; and what inputs were rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.extensions.page.downloads import table_file
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import live_of, render, view_of
from trecexam.extensions.page.tabled import tabled
from trecexam.files.stamps import Rejected
from trecexam.tables.table import Layout, Table

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

#: What the usage of a grader is called on the page, in the order of the page.
USAGE = {"requests": "requests", "tokens_in": "tokens in", "tokens_out": "tokens out", "cost": "money"}


def work(request: Request) -> Response:
    """Cells of all graders by what became of them, the pace of the last minutes, and what was used."""
    counts, live = view_of(request).all_counts, live_of(request)
    pace = live.pace.cells_a_second()
    now = live.work
    left = 0 if now is None else now.cells - now.graded
    outcomes = {
        "graded": counts.ok,
        "answers that name no rating": counts.unparsed,
        "refused by the model": counts.refused,
        "failed": counts.error,
        "not graded yet": counts.missing,
        "without a text": counts.no_text_cells,
    }
    file = table_file(Address.of(request), {"outcomes": Table(("cells", "number"), tuple(outcomes.items()))})
    if file is not None:
        return file
    return render(
        request,
        "work.html",
        counts=counts,
        outcomes=outcomes,
        pace=pace,
        minutes=None if pace is None else left / pace / 60,
        left=left,
        usage={
            name: now.usage[key]
            for key, name in USAGE.items()
            if now is not None and now.usage is not None and now.usage.get(key) is not None
        },
    )


def rejected(request: Request) -> Response:
    """Files, and lines of them, that were rejected."""
    view = view_of(request)
    table = Table(Rejected._fields, tuple(map(tuple, view.rejected)), layout=Layout(("file",)))
    shown = tabled(table, Address.of(request), "file")
    return render(request, "rejected.html", table=shown, rows=shown.rows, all=len(view.rejected))


ROUTES = [Route("/work", work), Route("/rejected", rejected)]
