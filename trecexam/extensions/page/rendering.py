"""Renders templates, with common values and messages for the next page."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from trecexam.extensions.campaign.plan import PLAN
from trecexam.extensions.page import cookies, drawing, urls
from trecexam.extensions.page.listing import SIZES, Address
from trecexam.extensions.page.users import VISITOR, user_of
from trecexam.folder import TrackFolder
from trecexam.inputs.track_graders import grader_names, open_folder
from trecexam.results.page import page as macros
from trecexam.results.page.page import Section
from trecexam.results.text import plural
from trecexam.version import __version__

if TYPE_CHECKING:
    from trecexam.extensions.page.live import LiveTrack
    from trecexam.extensions.page.view import QueryView, View

#: The cookie of a message for the next page, and its most letters; browsers drop a cookie of more than 4,096.
SAID, LONGEST = "trecexam-said", 3000
#: The cookie with the user's name, and how many seconds it is kept.
WHO, A_YEAR = "trecexam-who", 365 * 24 * 3600


def query_of(request: Request) -> QueryView:
    """The query in the path.

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
    """The track of the page."""
    live: LiveTrack = request.app.state.live
    return live


def view_of(request: Request) -> View:
    """The view that a request is answered from.

    Raises:
        NotReadyError: the first one is still being read; the app answers with a page that says so.
        NotFoundError: the path names a grader that there is not, or that can say nothing now.
    """
    view = first_view_of(request)
    name = request.path_params.get("grader")
    of_grader = view.of(name)
    if of_grader is None:
        why = view.unable.get(str(name), f"the graders are {', '.join(view.graders) or view.own}")
        raise NotFoundError(f"There is no grader '{name}' here: {why}")
    return of_grader


def first_view_of(request: Request) -> View:
    """The view of the first grader, which holds the others'.

    Raises:
        NotReadyError: as `view_of`.
    """
    view = live_of(request).view
    if view is None:
        raise NotReadyError
    scope_view: View = request.scope.setdefault("view", view)
    return scope_view


class Switch(NamedTuple):
    """A link to a grader's pages, and whether it is the current one."""

    name: str
    href: str
    here: bool


def switches(request: Request, view: View | None) -> list[Switch]:
    """Links to all graders together and to each; to the same page where possible.

    Args:
        view: of the first.
    """
    if view is None or not view.graders:
        return []
    params, path = request.path_params, urls.inside(Address.of(request).path)
    current = params.get("grader", view.own if request.scope.get("shows_grader") and path != "/" else None)
    is_list = current is not None and not params.keys() - {"grader"}
    page = path.removeprefix(f"/grader/{urls.segment(params['grader'])}" if "grader" in params else "")
    grader_switches = (
        Switch(name, urls.grader(name, page if is_list else ""), name == current)
        for name in (view.own, *view.others)
    )
    return [Switch("All graders", urls.start(), path == "/"), *grader_switches]


class NotReadyError(Exception):
    """The track is not read yet."""


class NotFoundError(Exception):
    """A run, query, passage or item does not exist (any more)."""


def render(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Renders a template. Users' text is escaped; characters that cannot be encoded are replaced.

    Templates have, beside `values`: `live`, `view` (None while loading), `urls`, `csrf()`, `at` (this page's
    `Address`; `here` as text), `is_here(href)`, `messages`, and the macros of parts.html, which they import;
    and of the user `user` (None without users), `sees_all` and `may_change`; `campaign`: whether there is
    one to look at; `switches`: the graders, where there are several.
    """
    user = user_of(request)
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
                "switches": switches(request, first) if sees_all else [],
                "csrf": lambda: _csrf(request),
                "at": at,
                "here": str(at),
                "is_here": lambda href: href in {at.path, urls.of_grader(at.path)},
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
        cookies.drop(response, SAID)
    return response


def go(request: Request, target: str, message: str = "") -> RedirectResponse:
    """Redirects after a POST to a page (see `urls`), which shows the message once."""
    response = RedirectResponse(target, 303)
    if message:
        cookies.keep(response, SAID, _quoted(message), seconds=60)
    return response


def _quoted(message: str) -> str:
    """The message encoded for a cookie, shortened if necessary."""
    room = LONGEST
    for end, sign in enumerate(message):
        room -= len(quote(sign, errors="replace"))
        if room < 0:
            return quote(message[:end].rstrip() + "…", errors="replace")
    return quote(message, errors="replace")


def who_of(request: Request) -> str:
    """The user's name: of the login, else from the browser's cookie, else ""."""
    user = user_of(request)
    return user.name if user is not None else unquote(request.cookies.get(WHO, ""))[:200]


def author_of(request: Request) -> str:
    """The sender of a form: the logged-in user, else the name in the form."""
    user = user_of(request)
    return user.name if user is not None else form_of(request).get("who", "")


def remember(response: Response, who: str) -> Response:
    """Stores the user's name in a cookie."""
    who = " ".join(who.split())[:200]
    if who:
        cookies.keep(response, WHO, quote(who, errors="replace"), seconds=A_YEAR)
    else:
        cookies.drop(response, WHO)
    return response


def form_of(request: Request) -> dict[str, str]:
    """The fields of the submitted form, checked by the guard."""
    form: dict[str, str] = request.scope["form"]
    return form


def _csrf(request: Request) -> Markup:
    return Markup('<input type="hidden" name="csrf" value="{}">').format(request.scope["csrf"])


@cache
def environment() -> jinja2.Environment:
    """The template environment, with autoescaping."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([Path(__file__).parent / "templates", macros.HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(urls=urls, version=__version__, sizes=SIZES, draw=drawing)
    made.filters.update(macros.filters(), number=drawing.number, count=drawing.count, plural=plural)
    made.filters["section_link"] = _section_link
    return made


def _section_link(section: Section) -> tuple[str, str]:
    return section.link, urls.section(section.name)


def warm_up() -> None:
    """Compiles all templates at start."""
    made = environment()
    for name in made.list_templates(extensions=["html"]):
        made.get_template(name)


def grader_folder(request: Request) -> TrackFolder:
    """The folder of the page's grader.

    Raises:
        NotFoundError: a form names no grader, and the first of trecexam.toml, which it is for, cannot go on.
    """
    root, view = live_of(request).root, view_of(request)
    folder = open_folder(root, view.own)
    names = grader_names(folder)
    if request.method == "POST" and "grader" not in request.path_params and view.own != names[0]:
        why = view.unable.get(names[0], "see trecexam status")
        raise NotFoundError(f"Nothing was saved: the grader {names[0]} of this form cannot grade: {why}.")
    return folder
