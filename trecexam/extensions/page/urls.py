"""The page's addresses. Run names, query, document and item ids hold anything: `/`, `#`, `%`, `..`, blanks.

A name is a path segment here, with `~` for the `%` of percent-encoding: what is between us and the browser
decodes `%2F` and takes `..` for a folder, and leaves these alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode

Value = str | int | None


class Place(NamedTuple):
    """Where the page is to its readers.

    Attributes:
        prefix: what stands before each of its paths, as "/trec"; "" for nothing.
        secure: whether they reach it by https.
    """

    prefix: str = ""
    secure: bool = False


_HERE = Place()
#: The place of the request that is answered; the guard sets it.
PLACE: ContextVar[Place] = ContextVar("place", default=_HERE)
#: The grader whose pages are asked for by its name; "" for those of the first.
GRADER: ContextVar[str] = ContextVar("grader", default="")


def segment(name: str) -> str:
    """A name as a path segment of ASCII letters, digits, `_`, `-`, `.` and `~`."""
    if not name.strip("."):
        # "", "." and "..": browsers resolve these.
        return "~" + name.replace(".", "~2E")
    return quote(name, safe="", errors="surrogateescape").replace("~", "%7E").replace("%", "~")


def name_of(segment: str) -> str:
    """The name that a path segment stands for."""
    if segment.startswith("~") and not segment[1:].replace("~2E", ""):
        return segment[1:].replace("~2E", ".")
    return unquote(segment.replace("~", "%"), errors="surrogateescape")


def with_query(path: str, given: Mapping[str, Value] | None = None, **more: Value) -> str:
    """The path with a query string; None and "" are left out."""
    pairs = {key: value for key, value in {**(given or {}), **more}.items() if value not in (None, "")}
    return f"{path}?{urlencode(pairs, errors='surrogateescape')}" if pairs else path


def _at(path: str, given: Mapping[str, Value] | None = None) -> str:
    return with_query(PLACE.get().prefix + path, given)


def _of_grader(path: str, given: Mapping[str, Value] | None = None) -> str:
    """A page of the grader that is looked at."""
    name = GRADER.get()
    return _at(f"/grader/{segment(name)}{path.rstrip('/')}" if name else path, given)


def grader(name: str, page: str = "") -> str:
    """A grader's leaderboard, or another page of its own: its path without the name before it."""
    return _at(f"/grader/{segment(name)}{page}")


def start() -> str:
    """The leaderboard of all graders; of one, its leaderboard."""
    return _at("/")


def board(**more: Value) -> str:
    """The leaderboard."""
    return _of_grader("/", more)


def run(name: str, **more: Value) -> str:
    """One run: its values on every query."""
    return _of_grader(f"/run/{segment(name)}", more)


def run_query(name: str, query_id: str, **more: Value) -> str:
    """One run's ranking for one query."""
    return _of_grader(f"/run/{segment(name)}/query/{segment(query_id)}", more)


def queries(**more: Value) -> str:
    """All queries."""
    return _of_grader("/queries", more)


def query(query_id: str, **more: Value) -> str:
    """One query: its passages, and all runs on it."""
    return _of_grader(f"/query/{segment(query_id)}", more)


def passage(query_id: str, doc_id: str, item_id: str | None = None, **more: Value) -> str:
    """One passage with its grades on all items, or on the one in focus."""
    return _of_grader(f"/query/{segment(query_id)}/passage/{segment(doc_id)}", {"item": item_id, **more})


def item(query_id: str, item_id: str, **more: Value) -> str:
    """One item, with the grades of all passages on it."""
    return _of_grader(f"/query/{segment(query_id)}/item/{segment(item_id)}", more)


def disagreements(**more: Value) -> str:
    """Passages whose label and official judgment differ."""
    return _of_grader("/disagreements", more)


def work(**more: Value) -> str:
    """What is being graded."""
    return _at("/work", more)


def holes(**more: Value) -> str:
    """Where judgments and grades are missing."""
    return _of_grader("/holes", more)


def section(name: str, **more: Value) -> str:
    """What an extension adds to the report."""
    return _of_grader(f"/section/{segment(name)}", more)


def rejected(**more: Value) -> str:
    """Inputs that were not taken."""
    return _at("/rejected", more)


def search(**more: Value) -> str:
    """Queries, items, runs and passages by id or text."""
    return _of_grader("/search", more)


def judge(**more: Value) -> str:
    """What a person should judge next."""
    return _of_grader("/judge", more)


def bank(query_id: str, **more: Value) -> str:
    """The items of one query, to edit."""
    return _of_grader(f"/bank/{segment(query_id)}", more)


def judge_again() -> str:
    """Where the form is sent that shows once more what was skipped."""
    return _of_grader("/judge/again")


def judge_step(way: str, query_id: str, doc_id: str, item_id: str, **more: Value) -> str:
    """From this judgment to the "next" or the "previous" one."""
    return _of_grader(f"/judge/{way}", {"query": query_id, "doc": doc_id, "item": item_id, **more})


def bank_change(query_id: str, change: str) -> str:
    """Where the form is sent that adds an item ("add"), edits ("edit") or retires one ("retire")."""
    path = _of_grader(f"/bank/{segment(query_id)}/item")
    return path if change == "add" else f"{path}/{change}"


def override() -> str:
    """Where a person's rating is sent."""
    return _of_grader("/override")


def who(back: str = "") -> str:
    """Who is at the page."""
    return _at("/who", {"back": back})


def inside(path: str) -> str:
    """A path of this page's own without what stands before each of them."""
    return path.removeprefix(PLACE.get().prefix)


def local(path: str) -> str:
    """The path, prefix included, where it is one of this page's own; else the leaderboard."""
    own = (
        path.startswith(PLACE.get().prefix + "/")
        and not path.startswith(("//", "/\\"))
        and path.isprintable()
    )
    # Browsers resolve these, and what lies above the prefix is another site's.
    own = own and {".", ".."}.isdisjoint(unquote(path.partition("?")[0]).split("/"))
    return path if own else board()


def static(name: str) -> str:
    """A file of the page's own."""
    return _at(f"/static/{name}")


def state() -> str:
    """What the page's script asks every few seconds."""
    return _at("/state")


def login(back: str = "") -> str:
    """Where people log in.

    Args:
        back: where they go afterwards.
    """
    return _at("/login", {"back": back})


def logout() -> str:
    """Where the form is sent that logs out."""
    return _at("/logout")


def assess(**more: Value) -> str:
    """An assessor's first page."""
    return _of_grader("/assess", more)


def assess_passage(name: str, **more: Value) -> str:
    """A passage that an assessor judges."""
    return _of_grader(f"/assess/passage/{segment(name)}", more)


def campaign() -> str:
    """How far the assessors are."""
    return _of_grader("/campaign")


def campaign_agreement(**more: Value) -> str:
    """How far assessors agree, and where they do not."""
    return _of_grader("/campaign/agreement", more)


def adjudicate() -> str:
    """Where the form is sent that decides between assessors."""
    return _of_grader("/campaign/adjudicate")
