"""The leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.serving.rendering import render, view_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def leaderboard(request: Request) -> Response:
    """All runs with their means."""
    view = view_of(request)
    return render(request, "leaderboard.html", board=view.board)


ROUTES = [Route("/", leaderboard)]
