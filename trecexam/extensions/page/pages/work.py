"""Pages on grading (progress, speed, cost, failures) and on rejected inputs."""

from __future__ import annotations

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page.drawing import count, number
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import live_of, render, view_of
from trecexam.extensions.page.tabled import drawn, tabled
from trecexam.files.stamps import Rejected
from trecexam.results.table import Layout, Table

#: What the usage of a grader is called on the page, in the order of the page.
USAGE = {"requests": "requests", "tokens_in": "tokens in", "tokens_out": "tokens out", "cost": "money"}


def work(request: Request) -> Response:
    """All graders' cells by status, the current speed, and tokens and cost."""
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
    shares = [100 * n / counts.cells if counts.cells else None for n in outcomes.values()]
    rows = tuple((*outcome, share) for outcome, share in zip(outcomes.items(), shares, strict=True))
    table = Table(("cells", "number", "share, %"), rows, layout=Layout(("cells",)))
    used = None if now is None else now.usage
    usage = [(name, used[key]) for key, name in USAGE.items() if used and used.get(key) is not None]
    amounts = Table(("used", "amount"), tuple(usage), layout=Layout(("used",)))
    return render(
        request,
        "work.html",
        counts=counts,
        outcomes=drawn(table, draw={"share, %": lambda at: Markup(number(shares[at], 1))}),
        pace=pace,
        minutes=None if pace is None else left / pace / 60,
        left=left,
        usage=drawn(amounts, draw={"amount": lambda at: _amount(*usage[at])}) if usage else None,
    )


def _amount(name: str, amount: float) -> Markup:
    return Markup(number(amount, 2) if name == "money" else count(int(amount)))


def rejected(request: Request) -> Response:
    """Rejected files and lines."""
    view = view_of(request)
    table = Table(Rejected._fields, tuple(map(tuple, view.rejected)), layout=Layout(("file",)))
    file_table = tabled(table, Address.of(request), "file")
    return render(request, "rejected.html", table=file_table, all=len(view.rejected))


ROUTES = [Route("/work", work), Route("/rejected", rejected)]
