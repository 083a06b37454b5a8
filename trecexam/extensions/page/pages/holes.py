"""Where judgments and grades are missing: in the runs' first ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.extensions.page.listing import Address, in_order
from trecexam.extensions.page.rendering import render, view_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


@dataclass(frozen=True)
class HolesLine:
    """A run's holes over all queries; `judged` is the share of what it retrieved that has a judgment."""

    run: str
    retrieved: int
    unjudged: int | None
    ungraded: int

    @property
    def judged(self) -> float | None:
        """0..1; None without judgments, or where it retrieved nothing."""
        if self.unjudged is None or not self.retrieved:
            return None
        return 1 - self.unjudged / self.retrieved


def holes(request: Request) -> Response:
    """Every run's holes in its first ranks."""
    view, address = view_of(request), Address.of(request)
    counts = view.holes
    search_text = address.get("q").casefold()
    rows = [
        HolesLine(
            run,
            int(counts.retrieved[n].sum()),
            None if counts.unjudged is None else int(counts.unjudged[n].sum()),
            int(counts.ungraded[n].sum()),
        )
        for n, run in enumerate(view.runs)
        if search_text in run.casefold()
    ]
    keys = {
        "run": lambda row: row.run,
        "retrieved": lambda row: row.retrieved,
        "unjudged": lambda row: row.unjudged,
        "ungraded": lambda row: row.ungraded,
        "judged": lambda row: row.judged,
    }
    default = "-ungraded" if counts.unjudged is None else "-unjudged"
    return render(request, "holes.html", rows=in_order(rows, address, keys, default), depth=counts.depth)


ROUTES = [Route("/holes", holes)]
