"""Finds queries, runs, items and passages by their ids or texts."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page.gather import COUNTED, MOST, find
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.rendering import live_of, render, view_of


def search(request: Request) -> Response:
    """Queries, runs, items and passages that contain this text, ignoring case."""
    view = view_of(request)
    query_text = " ".join(Address.of(request).get("q").split())
    search_text = query_text.casefold()
    if not search_text:
        return render(request, "search.html", asked="", most=MOST)
    found = live_of(request).call(view.own, find, search_text)
    return render(
        request,
        "search.html",
        asked=query_text,
        most=MOST,
        counted=COUNTED,
        queries=[pair for pair in view.queries.items() if search_text in "\t".join(pair).casefold()],
        runs=[run for run in view.runs if search_text in run.casefold()],
        items=found.items,
        passages=found.passages,
        total=found.total,
    )


ROUTES = [Route("/search", search)]
