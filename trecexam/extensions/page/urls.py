"""The page's addresses. Run names, query, document and item ids hold anything: `/`, `#`, `%`, `..`, blanks.

A name is a path segment here, with `~` for the `%` of percent-encoding: what is between us and the browser
decodes `%2F` and takes `..` for a folder, and leaves these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode

Value = str | int | None


class Place(NamedTuple):
    """The public scheme, host and path of the page.

    Attributes:
        prefix: what stands before each of its paths, as "/trec"; "" for nothing.
        secure: whether they reach it by https.
    """

    prefix: str = ""
    secure: bool = False


_HERE = Place()
#: The place of the request that is answered; the guard sets it.
PLACE: ContextVar[Place] = ContextVar("place", default=_HERE)
#: The grader whose pages are requested by its name; "" for those of the first.
GRADER: ContextVar[str] = ContextVar("grader", default="")


def segment(name: str) -> str:
    """A name as a path segment of ASCII letters, digits, `_`, `-`, `.` and `~`."""
    if not name.strip("."):
        # "", "." and "..": browsers resolve these.
        return "~" + name.replace(".", "~2E")
    return quote(name, safe="", errors="surrogateescape").replace("~", "%7E").replace("%", "~")


def name_of(segment: str) -> str:
    """The name that a path segment means."""
    if segment.startswith("~") and not segment[1:].replace("~2E", ""):
        return segment[1:].replace("~2E", ".")
    return unquote(segment.replace("~", "%"), errors="surrogateescape")


def with_query(path: str, params: Mapping[str, Value] | None = None, **more: Value) -> str:
    """The path with a query string; None and "" are left out."""
    pairs = {key: value for key, value in {**(params or {}), **more}.items() if value not in (None, "")}
    return f"{path}?{urlencode(pairs, errors='surrogateescape')}" if pairs else path


def _at(path: str, params: Mapping[str, Value] | None = None) -> str:
    return with_query(PLACE.get().prefix + path, params)


def _of_grader(path: str, params: Mapping[str, Value] | None = None) -> str:
    """A page of the current grader."""
    name = GRADER.get()
    return _at(f"/grader/{segment(name)}{path.rstrip('/')}" if name else path, params)


def grader(name: str, page: str = "") -> str:
    """The path of a grader's leaderboard or another of its pages."""
    return _at(f"/grader/{segment(name)}{page}")


def _to(path: str, *, of_all: bool = False) -> Callable[..., str]:
    """A function that makes a page's address from names in its path and fields of its query string."""
    at = _at if of_all else _of_grader
    return lambda *names, **fields: at(path.format(*map(segment, names)), fields)


#: The leaderboard of all graders; of one, its leaderboard.
start = _to("/", of_all=True)
#: Pages of one grader; a name means each {}.
board = _to("/")
run = _to("/run/{}")
run_query = _to("/run/{}/query/{}")
queries = _to("/queries")
query = _to("/query/{}")
item = _to("/query/{}/item/{}")
disagreements = _to("/disagreements")
section = _to("/section/{}")
search = _to("/search")
bank = _to("/bank/{}")
override = _to("/override")
assess = _to("/assess")
assess_passage = _to("/assess/passage/{}")
campaign = _to("/campaign")
campaign_agreement = _to("/campaign/agreement")
adjudicate = _to("/campaign/adjudicate")
#: Pages of all graders, or of none.
work = _to("/work", of_all=True)
rejected = _to("/rejected", of_all=True)
state = _to("/state", of_all=True)
who = _to("/who", of_all=True)
login = _to("/login", of_all=True)
logout = _to("/logout", of_all=True)


def passage(query_id: str, doc_id: str, item_id: str | None = None, **more: Value) -> str:
    """The address of a passage, with an optional item in focus."""
    return _of_grader(f"/query/{segment(query_id)}/passage/{segment(doc_id)}", {"item": item_id, **more})


def bank_change(query_id: str, change: str) -> str:
    """The address for forms that "add", "edit" or "retire" an item."""
    path = bank(query_id) + "/item"
    return path if change == "add" else f"{path}/{change}"


def static(name: str) -> str:
    """The address of a static file."""
    return _at(f"/static/{name}")


def inside(path: str) -> str:
    """A path of this page without the prefix."""
    return path.removeprefix(PLACE.get().prefix)


def of_grader(path: str) -> str:
    """This path as links of the page have it: with the grader's name, where several grade."""
    return _of_grader(inside(path))


def local(path: str) -> str:
    """The path with prefix if it belongs to this page, else the leaderboard's."""
    is_local = (
        path.startswith(PLACE.get().prefix + "/")
        and not path.startswith(("//", "/\\"))
        and path.isprintable()
    )
    # Browsers resolve these, and what lies above the prefix is another site's.
    is_local = is_local and {".", ".."}.isdisjoint(unquote(path.partition("?")[0]).split("/"))
    return path if is_local else board()
