"""What extensions add: the sections that they have in the report, a page each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.extensions.page.rendering import NotFoundError, render, view_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def section(request: Request) -> Response:
    """One of them."""
    name = request.path_params["section"]
    found = next((each for each in view_of(request).sections if each.name == name), None)
    if found is None:
        raise NotFoundError(f"There is nothing here called '{name}' (any more).")
    return render(request, "section.html", section=found)


ROUTES = [Route("/section/{section:name}", section)]
