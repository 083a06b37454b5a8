"""The page as an ASGI application: routes, errors, and the guard before them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from trecexam.errors import TrecexamError
from trecexam.extensions.page.front import Front
from trecexam.extensions.page.guard import Guard
from trecexam.extensions.page.listing import Address
from trecexam.extensions.page.live import LiveTrack
from trecexam.extensions.page.pages import routes
from trecexam.extensions.page.rendering import NotFoundError, NotReadyError, live_of, render
from trecexam.extensions.page.sessions import Sessions
from trecexam.extensions.page.users import Users, user_of
from trecexam.results.html import LOOK

#: Maximum seconds that the first request waits for the first state.
FIRST_LOOK = 1.5


def create_app(
    live: LiveTrack,
    *,
    token: str | None = None,
    hosts: Iterable[str] = (),
    cookie: str = "trecexam",
    front: Front | None = None,
    users: Users | None = None,
) -> Starlette:
    """Return the ASGI application of a track's page.

    Args:
        live: a running `LiveTrack`, which the caller stops.
        token, hosts, cookie, front: see `Guard`.
        users: who may log in; None where nobody has to.
    """
    front = front or Front()
    sessions = None if users is None else Sessions(users, front, cookie)
    static = StaticFiles(directory=Path(__file__).parent / "static")
    static.all_directories.append(LOOK)
    app = Starlette(
        routes=[*routes(), Mount("/static", static)],
        middleware=[
            Middleware(Guard, token=token, hosts=tuple(hosts), cookie=cookie, front=front, sessions=sessions)
        ],
        exception_handlers={
            NotReadyError: _not_ready,
            NotFoundError: _not_found,
            TrecexamError: _failed,
            HTTPException: _http,
        },
    )
    app.state.live = live
    app.state.front = front
    app.state.sessions = sessions
    app.state.desks = {}
    app.state.assessing = {}
    return app


def _not_ready(request: Request, error: Exception) -> Response:
    live = live_of(request)
    live.wait_for(lambda track: track.view is not None or bool(track.trouble), FIRST_LOOK)
    if live.view is not None and request.method == "GET":
        return RedirectResponse(str(Address.of(request)), 303)
    return render(request, "loading.html", 503 if live.trouble else 200)


def _not_found(request: Request, error: Exception) -> Response:
    return render(request, "message.html", 404, title="Not here", text=_blind(request, error))


def _failed(request: Request, error: Exception) -> Response:
    return render(request, "message.html", 422, title="This is not possible", text=_blind(request, error))


def _blind(request: Request, error: Exception) -> str:
    """Return the error's message; for assessors a general text, since errors may name documents or runs."""
    user = user_of(request)
    if user is None or user.role in {"organizer", "reader"}:
        return str(error)
    return "Go back and try again. If that does not help, tell the organizer of the track what you did."


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "There is no such page." if error.status_code == 404 else error.detail
    return render(request, "message.html", error.status_code, title=str(error.status_code), text=text)
