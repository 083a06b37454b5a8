"""The pages, a module per group of routes: `routes()` of each, in the order of matching.

Those of `OF_GRADER` are of one grader: at their own addresses of the first of the track that can go on, and
below `/grader/NAME` of the one of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page import urls
from trecexam.extensions.page.rendering import first_view_of

#: Every module here has `ROUTES`.
OF_GRADER = (
    *("leaderboard", "runs", "queries", "passages", "items", "disagreements", "search"),
    *("people", "bank", "assess", "campaign"),
)
#: Of all graders; and what says nothing of the track.
OF_ALL, OTHERS = ("work",), ("login", "state")


def routes() -> list[Route]:
    """The routes of all pages."""
    of_grader = _routes(OF_GRADER)
    named = ((route, f"/grader/{{grader:name}}{route.path.rstrip('/')}") for route in of_grader)
    return [
        *(_showing(route, route.path) for route in of_grader),
        *(_showing(*pair) for pair in named),
        *(_showing(route, route.path, of_all=True) for route in _routes(OF_ALL)),
        *_routes(OTHERS),
    ]


def _routes(modules: Sequence[str]) -> list[Route]:
    return [route for name in modules for route in import_module(f"{__name__}.{name}").ROUTES]


def _showing(route: Route, path: str, *, of_all: bool = False) -> Route:
    """The page at this path for the grader in the path, or for the first one that works.

    Where there are several graders, links and forms name theirs: whom a form is for must not change because
    another one can go on meanwhile.
    """
    answer: Callable[[Request], Response] = route.endpoint

    @wraps(answer)
    def with_grader(request: Request) -> Response:
        view = first_view_of(request)
        request.scope["shows_grader"] = not of_all
        urls.GRADER.set(request.path_params.get("grader", view.own if view.graders else ""))
        return answer(request)

    return Route(path, with_grader, methods=sorted(route.methods or ()))
