"""Where people log in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from trecexam.serving import cookies, urls
from trecexam.serving.logins import TooManyError
from trecexam.serving.pages import judge, support
from trecexam.serving.rendering import SAID, WHO, NotFoundError, form_of, go, render
from trecexam.serving.users import VISITOR

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from trecexam.serving.logins import Logins
    from trecexam.serving.sessions import Sessions, Visitor

WRONG = "There is nobody of that name with that password or token."
TOO_MANY = "Too many wrong logins came for this name or from this address. Try again in a minute."


async def login(request: Request) -> Response:
    """Asks for a name and a password or token; with a form, logs in."""
    sessions = _sessions(request)
    logins: Logins = request.app.state.logins
    if request.method != "POST":
        return _form(request, sessions, request.query_params.get("back", ""))
    form = form_of(request)
    name, back = form.get("name", "").strip(), form.get("back", "")
    try:
        entry = await logins.entry(name, form.get("secret", ""), sessions.client(request.scope))
    except TooManyError:
        return _form(request, sessions, back, 429, name=name, trouble=TOO_MANY)
    if entry is None:
        return _form(request, sessions, back, 401, name=name, trouble=WRONG)
    sessions.end(request.scope)
    response = go(request, urls.local(back))
    # With "strict" who follows a link in a mail would have to log in again.
    cookies.keep(response, sessions.cookie, sessions.begin(entry), samesite="lax")
    return response


async def logout(request: Request) -> Response:
    """Ends the login."""
    sessions = _sessions(request)
    sessions.end(request.scope)
    response = go(request, urls.login())
    for name in (sessions.cookie, SAID, WHO, judge.TRAIL, support.TRAIL):
        cookies.drop(response, name)
    return response


def _form(
    request: Request, sessions: Sessions, back: str, status: int = 200, *, name: str = "", trouble: str = ""
) -> Response:
    visitor: Visitor = request.scope["visitor"]
    if visitor.user is not VISITOR and status == 200:
        return go(request, urls.local(back))
    response = render(
        request, "login.html", status, back=urls.local(back) if back else "", name=name, trouble=trouble
    )
    if visitor.fresh:
        cookies.keep(response, sessions.cookie, visitor.fresh, samesite="lax")
    return response


def _sessions(request: Request) -> Sessions:
    sessions: Sessions | None = request.app.state.sessions
    if sessions is None:
        raise NotFoundError("Nobody has to log in here.")
    return sessions


ROUTES = [
    Route("/login", login, methods=["GET", "POST"]),
    Route("/logout", logout, methods=["POST"]),
]
