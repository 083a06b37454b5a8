"""The pages, a module per group of routes: `ROUTES` of each, in the order of matching.

Those of `OF_GRADER` are of one grader: at their own addresses of the first of the track that can go on, and
below `/grader/NAME` of the one of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module

from starlette.convertors import CONVERTOR_TYPES, Convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page.rendering import first_view_of, urls_of
from trecexam.extensions.page.urls import name_of, segment

OF_GRADER = ("results", "queries", "passages", "people", "bank", "assess", "campaign")
#: Pages that say nothing of the track.
OTHERS = ("login", "state")


class _Name(Convertor[str]):
    """A name in a path: see `segment`."""

    regex = r"[A-Za-z0-9_.~\-]+"

    def convert(self, value: str) -> str:
        return name_of(value)

    def to_string(self, value: str) -> str:
        return segment(value)


CONVERTOR_TYPES["name"] = _Name()


def routes() -> list[Route]:
    """Return the routes of all pages."""
    of_grader = _routes(OF_GRADER)
    named = ((route, f"/grader/{{grader:name}}{route.path.rstrip('/')}") for route in of_grader)
    return [
        *(_showing(route, route.path) for route in of_grader),
        *(_showing(*pair) for pair in named),
        *_routes(OTHERS),
    ]


def _routes(modules: Sequence[str]) -> list[Route]:
    return [route for name in modules for route in import_module(f"{__name__}.{name}").ROUTES]


def _showing(route: Route, path: str) -> Route:
    """Return the page at this path for the grader in the path, or for the first one that works.

    Where there are several graders, links and forms name theirs: whom a form is for must not change because
    another one can go on meanwhile.
    """
    answer: Callable[[Request], Response] = route.endpoint

    @wraps(answer)
    def with_grader(request: Request) -> Response:
        view = first_view_of(request)
        name = request.path_params.get("grader", view.grader_name if view.graders else "")
        request.scope["urls"] = urls_of(request).of(name)
        return answer(request)

    return Route(path, with_grader, methods=sorted(route.methods or ()))
