"""Inputs, and lines of them, that were rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from trecexam.extensions.page.listing import Address, in_order
from trecexam.extensions.page.rendering import render, view_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def rejected(request: Request) -> Response:
    """Inputs, and lines of them, that were not taken."""
    view, address = view_of(request), Address.of(request)
    search_text = address.get("q").casefold()
    rows = [row for row in view.rejected if search_text in str(row).casefold()]
    keys = {
        "file": lambda row: (row.file, row.line or 0),
        "reason": lambda row: row.reason,
        "lost": lambda row: row.lost,
    }
    file_columns: dict[str, Callable[[Any], Any]] = {
        "file": lambda row: row.file,
        "line": lambda row: row.line,
        "reason": keys["reason"],
        "lost": keys["lost"],
    }
    return render(
        request,
        "rejected.html",
        rows=in_order(rows, address, keys, "file", file_columns),
        all=len(view.rejected),
    )


ROUTES = [Route("/rejected", rejected)]
