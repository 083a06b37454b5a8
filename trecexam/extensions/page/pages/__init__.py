"""The pages, a group of routes a module: `routes()` of each, in the order in which they are tried."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.routing import Route

#: Every module here has `ROUTES`.
MODULES = (
    "leaderboard",
    "runs",
    "queries",
    "passages",
    "items",
    "disagreements",
    "holes",
    "sections",
    "work",
    "search",
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
    return [route for name in MODULES for route in import_module(f"{__name__}.{name}").ROUTES]
