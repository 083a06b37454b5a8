"""Where assessors judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.serving.rendering import NotFoundError, render
from trecexam.serving.users import user_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def assess(request: Request) -> Response:
    """Says that there is nothing to judge."""
    if user_of(request) is None:
        raise NotFoundError("Assessors need names: start the page with `trecexam serve --users`.")
    return render(request, "assess.html")


ROUTES = [Route("/assess", assess)]
