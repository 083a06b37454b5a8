"""Renders templates, with common values and messages for the next page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from trecexam.extensions.campaign.plan import PLAN
from trecexam.extensions.page import cookies, drawing
from trecexam.extensions.page.listing import SIZES, Address
from trecexam.extensions.page.tabled import Draw, drawn, listed_table
from trecexam.extensions.page.users import VISITOR, user_of
from trecexam.folder import TrackFolder
from trecexam.inputs.track_graders import grader_names, open_folder
from trecexam.results import html as macros
from trecexam.results.terminal import cut
from trecexam.results.text import plural
from trecexam.version import __version__

if TYPE_CHECKING:
    from trecexam.extensions.page.front import Front
    from trecexam.extensions.page.live import LiveTrack
    from trecexam.extensions.page.urls import Urls
    from trecexam.extensions.page.view import QueryView, View
    from trecexam.results.result import Result

#: The cookie of a message for the next page, and its most letters; browsers drop a cookie of more than 4,096.
SAID, LONGEST = "trecexam-said", 300
#: The cookie with the user's name, and how many seconds it is kept.
WHO, A_YEAR = "trecexam-who", 365 * 24 * 3600
#: Rows of a table behind the first one.
MOST_ROWS = 200


class NotReadyError(Exception):
    """The track is not read yet."""


class NotFoundError(Exception):
    """A run, query, passage or item does not exist (any more)."""


def query_of(request: Request) -> QueryView:
    """Return the query in the path.

    Raises:
        NotReadyError: as `view_of`.
        NotFoundError: the bank does not have it (any more).
    """
    query_id = request.path_params["query_id"]
    state = view_of(request).query(query_id)
    if state is None:
        raise NotFoundError(f"The bank has no query '{query_id}'.")
    return state


def live_of(request: Request) -> LiveTrack:
    """Return the track of the page."""
    live: LiveTrack = request.app.state.live
    return live


def urls_of(request: Request) -> Urls:
    """Return the addresses of the pages of the request's grader."""
    urls: Urls = request.scope["urls"]
    return urls


def view_of(request: Request) -> View:
    """Return the view that a request is answered from.

    Raises:
        NotReadyError: the first one is still being read; the app answers with a page that says so.
        NotFoundError: the path names a grader that there is not, or that can say nothing now.
    """
    view = first_view_of(request)
    name = request.path_params.get("grader")
    of_grader = view.of(name)
    if of_grader is None:
        why = view.unable.get(str(name), f"the graders are {', '.join(view.graders) or view.grader_name}")
        raise NotFoundError(f"There is no grader '{name}' here: {why}")
    return of_grader


def first_view_of(request: Request) -> View:
    """Return the view of the first grader, which holds the others'.

    Raises:
        NotReadyError: as `view_of`.
    """
    view = live_of(request).view
    if view is None:
        raise NotReadyError
    scope_view: View = request.scope.setdefault("view", view)
    return scope_view


def _switches(request: Request, view: View | None) -> list[tuple[str, str, bool]]:
    """Return links to all graders together and to each: the name, the address, and whether it is this page.

    Args:
        view: of the first.
    """
    if view is None or not view.graders:
        return []
    urls, path, params = urls_of(request), Address.of(request).path, request.path_params
    is_start = path == urls.start()
    page = "" if params.keys() - {"grader", "result"} or is_start else urls.bare(path).rstrip("/")
    names = (view.grader_name, *view.other_views)
    current = "" if is_start else urls.grader_name
    switches = [("All graders", urls.start(), is_start)]
    return switches + [(name, urls.of(name).board() + page, name == current) for name in names]


def render(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Render a template. Users' text is escaped; characters that cannot be encoded are replaced.

    Templates have, beside `values`: `live`, `view` (None while loading), `urls`, `csrf()`, `at` (this page's
    `Address`; `here` as text), `is_here(href)`, `messages`, and the macros of parts.html, which they import;
    and of the user `user` (None without users), `sees_all` and `may_change`; `campaign`: whether there is
    one to look at; `switches`: the graders, where there are several.
    """
    user, urls = user_of(request), urls_of(request)
    live, at = live_of(request), Address.of(request)
    first: View | None = request.scope.get("view", live.view)
    view = first and (first.of(request.path_params.get("grader")) or first)
    # An unknown user sees no more than an assessor.
    sees_all = user is None or user.role in {"organizer", "reader"}
    message = request.cookies.get(SAID) if "x-refresh" not in request.headers else None
    page = (
        environment()
        .get_template(template)
        .render(
            {
                "live": live,
                "view": view,
                "urls": urls,
                "switches": _switches(request, first) if sees_all else [],
                "csrf": lambda: _csrf(request),
                "at": at,
                "here": str(at),
                "is_here": lambda href: urls.bare(href) == urls.bare(at.path),
                "messages": [unquote(message)] if message else [],
                "user": user,
                "campaign": user is not None or (live.root / PLAN).exists(),
                "sees_all": sees_all,
                "may_change": user is None or user.role == "organizer",
                "may_log_out": user not in {None, VISITOR},
                **values,
            }
        )
    )
    response = HTMLResponse(page.encode(errors="replace"), status)
    if message:
        cookies.drop(_front(request), response, SAID)
    return response


def show(
    request: Request,
    template: str,
    result: Result,
    sort: str = "",
    draw: Mapping[str, Draw] = MappingProxyType({}),
    **values: Any,
) -> Response:
    """Render a result: its first table by the address's order and filter, then the others and its notes.

    Args:
        sort: the order where the address has none.
        draw: see `tabled.drawn`.
    """
    urls, (first, *others) = urls_of(request), result._for_people() or (None,)
    rows, table = (
        (None, None) if first is None else listed_table(first, Address.of(request), urls, sort, draw)
    )
    return render(
        request, template, rows=rows, table=table, notes=result.notes,
        others=[drawn(each, urls, range(len(each))[:MOST_ROWS]) for each in others if each], **values,
    )  # fmt: skip


def go(request: Request, target: str, message: str = "", who: str | None = None) -> RedirectResponse:
    """Redirect to a page (see `urls`), which shows the message once.

    Args:
        who: the user's name, which a cookie remembers; "" to forget it, None to leave it.
    """
    response, front = RedirectResponse(target, 303), _front(request)
    if message:
        cookies.keep(front, response, SAID, quote(cut(message, LONGEST), errors="replace"), seconds=60)
    if who is not None:
        who = " ".join(who.split())[:200]
        cookies.keep(front, response, WHO, quote(who, errors="replace"), seconds=A_YEAR if who else 0)
    return response


def _front(request: Request) -> Front:
    front: Front = request.app.state.front
    return front


def who_of(request: Request) -> str:
    """Return the user's name: of the login, else from the browser's cookie, else ""."""
    user = user_of(request)
    return user.name if user is not None else unquote(request.cookies.get(WHO, ""))[:200]


def author_of(request: Request) -> str:
    """Return the sender of a form: the logged-in user, else the name in the form."""
    user = user_of(request)
    return user.name if user is not None else form_of(request).get("who", "")


def form_of(request: Request) -> dict[str, str]:
    """Return the fields of the submitted form, checked by the guard."""
    form: dict[str, str] = request.scope["form"]
    return form


def _csrf(request: Request) -> Markup:
    return Markup('<input type="hidden" name="csrf" value="{}">').format(request.scope["csrf"])


@cache
def environment() -> jinja2.Environment:
    """Return the template environment, with autoescaping."""
    made = macros.environment(Path(__file__).parent / "templates", macros.TEMPLATES)
    made.globals.update(version=__version__, sizes=SIZES, draw=drawing)
    made.filters.update(count=drawing.count, plural=plural)
    return made


def warm_up() -> None:
    """Compile all templates at start."""
    made = environment()
    for name in made.list_templates(extensions=["html"]):
        made.get_template(name)


def grader_folder(request: Request) -> TrackFolder:
    """Return the folder of the page's grader.

    Raises:
        NotFoundError: a form names no grader, and the first of trecexam.toml, which it is for, cannot go on.
    """
    root, view = live_of(request).root, view_of(request)
    folder = open_folder(root, view.grader_name)
    names = grader_names(folder)
    if request.method == "POST" and "grader" not in request.path_params and view.grader_name != names[0]:
        why = view.unable.get(names[0], "see trecexam status")
        raise NotFoundError(f"Nothing was saved: the grader {names[0]} of this form cannot grade: {why}.")
    return folder
