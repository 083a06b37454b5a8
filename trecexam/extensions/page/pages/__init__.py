"""The pages, a group of routes a module: `routes()` of each, in the order in which they are tried.

Those of `OF_GRADER` show what one grader says: at their own addresses the first of the track, and below
`/grader/NAME` the one of that name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.extensions.page import urls

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

#: Every module here has `ROUTES`.
OF_GRADER = (
    "leaderboard",
    "runs",
    "queries",
    "passages",
    "items",
    "disagreements",
    "holes",
    "sections",
    "search",
)
#: The others.
MODULES = (
    "work",
    "people",
    "judge",
    "support",
    "bank",
    "assess",
    "campaign",
    "login",
    "state",
)


def routes() -> list[Route]:
    """The routes of all pages."""
    of_grader = [route for name in OF_GRADER for route in _routes(name)]
    own = (Route(route.path, _showing(route)) for route in of_grader)
    named = (
        Route(f"/grader/{{grader:name}}{route.path.rstrip('/')}", _showing(route)) for route in of_grader
    )
    return [*own, *named, *(route for name in MODULES for route in _routes(name))]


def _routes(module: str) -> list[Route]:
    routes: list[Route] = import_module(f"{__name__}.{module}").ROUTES
    return routes


def _showing(route: Route) -> Callable[[Request], Response]:
    """The page of the grader that the path names, with links to others of that grader; else of the first."""
    answer: Callable[[Request], Response] = route.endpoint

    @wraps(answer)
    def of_grader(request: Request) -> Response:
        request.scope["shows_grader"] = True
        urls.GRADER.set(request.path_params.get("grader", ""))
        return answer(request)

    return of_grader
