"""Login, logout, and the form for a user's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trecexam.extensions.page import cookies
from trecexam.extensions.page.rendering import (
    SAID,
    WHO,
    NotFoundError,
    form_of,
    go,
    render,
    urls_of,
    who_of,
)
from trecexam.extensions.page.users import VISITOR, user_of
from trecexam.inputs.typed_text import MAX_WHO, typed

if TYPE_CHECKING:
    from trecexam.extensions.page.sessions import Sessions, Visitor

WRONG = "This token is wrong. Copy all of it again, or ask the organizer of the track for a new one."


async def login(request: Request) -> Response:
    """Show the form for a token; a submitted form logs in."""
    sessions = _sessions(request)
    if request.method != "POST":
        query = request.query_params
        token = query.get("token", "").strip()
        trouble = WRONG if token and sessions.users.with_token(token) is None else ""
        return _form(request, sessions, query.get("back", ""), token=token, trouble=trouble)
    form = form_of(request)
    entry, back = sessions.users.with_token(form.get("token", "").strip()), form.get("back", "")
    if entry is None:
        return _form(request, sessions, back, 401, trouble=WRONG)
    sessions.end(request.scope)
    response = go(request, urls_of(request).local(back))
    # With "strict" who follows a link in a mail would have to log in again.
    cookies.keep(request.app.state.front, response, sessions.cookie, sessions.begin(entry), samesite="lax")
    return response


async def logout(request: Request) -> Response:
    """End the login."""
    sessions = _sessions(request)
    sessions.end(request.scope)
    response = go(request, urls_of(request).login())
    for name in (sessions.cookie, SAID, WHO):
        cookies.drop(request.app.state.front, response, name)
    return response


def who(request: Request) -> Response:
    """Show the form for the user's name; a submitted form stores it in a cookie.

    Raises:
        TrecexamError: what the form has can be no name.
    """
    if request.method == "POST" and user_of(request) is None:
        form = form_of(request)
        name = typed("a name", form.get("who", ""), MAX_WHO)
        return go(request, urls_of(request).local(form.get("back", "")), who=name)
    back = urls_of(request).local(request.query_params.get("back", ""))
    return render(request, "who.html", who=who_of(request), back=back)


def _form(
    request: Request, sessions: Sessions, back: str, status: int = 200, *, token: str = "", trouble: str = ""
) -> Response:
    visitor: Visitor = request.scope["visitor"]
    entry = sessions.users.with_token(token)
    # Somebody else's link asks first, so that nobody judges under another one's name.
    is_theirs = not token or (entry is not None and entry == visitor.user)
    if visitor.user is not VISITOR and status == 200 and is_theirs:
        return go(request, urls_of(request).local(back))
    response = render(
        request,
        "login.html",
        status,
        back=urls_of(request).local(back) if back else "",
        token=token,
        name="" if entry is None else entry.name,
        trouble=trouble,
    )
    if visitor.fresh:
        cookies.keep(request.app.state.front, response, sessions.cookie, visitor.fresh, samesite="lax")
    return response


def _sessions(request: Request) -> Sessions:
    sessions: Sessions | None = request.app.state.sessions
    if sessions is None:
        raise NotFoundError("This page needs no login.")
    return sessions


ROUTES = [
    Route("/login", login, methods=["GET", "POST"]),
    Route("/logout", logout, methods=["POST"]),
    Route("/who", who, methods=["GET", "POST"]),
]
