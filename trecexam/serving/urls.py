"""The page's addresses. Run names, query, document and item ids hold anything: `/`, `#`, `%`, `..`, blanks.

A name is a path segment here, with `~` for the `%` of percent-encoding: what is between us and the browser
decodes `%2F` and takes `..` for a folder, and leaves these alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, unquote, urlencode

Value = str | int | None


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


def board(**more: Value) -> str:
    """The leaderboard."""
    return with_query("/", more)


def run(name: str, **more: Value) -> str:
    """One run: its values on every query."""
    return with_query(f"/run/{segment(name)}", more)


def run_query(name: str, query_id: str, **more: Value) -> str:
    """One run's ranking for one query."""
    return with_query(f"/run/{segment(name)}/query/{segment(query_id)}", more)


def queries(**more: Value) -> str:
    """All queries."""
    return with_query("/queries", more)


def query(query_id: str, **more: Value) -> str:
    """One query: its passages, and all runs on it."""
    return with_query(f"/query/{segment(query_id)}", more)


def passage(query_id: str, doc_id: str, item_id: str | None = None, **more: Value) -> str:
    """One passage with its grades on all items, or on the one in focus."""
    return with_query(f"/query/{segment(query_id)}/passage/{segment(doc_id)}", {"item": item_id, **more})


def item(query_id: str, item_id: str, **more: Value) -> str:
    """One item, with the grades of all passages on it."""
    return with_query(f"/query/{segment(query_id)}/item/{segment(item_id)}", more)


def disagreements(**more: Value) -> str:
    """Passages whose label and official judgment differ."""
    return with_query("/disagreements", more)


def holes(**more: Value) -> str:
    """Where judgments and grades are missing."""
    return with_query("/holes", more)


def rejected(**more: Value) -> str:
    """Inputs that were not taken."""
    return with_query("/rejected", more)


def search(**more: Value) -> str:
    """Queries, items, runs and passages by id or text."""
    return with_query("/search", more)


def judge(**more: Value) -> str:
    """What a person should judge next."""
    return with_query("/judge", more)


def bank(query_id: str, **more: Value) -> str:
    """The items of one query, to edit."""
    return with_query(f"/bank/{segment(query_id)}", more)


def judge_step(way: str, query_id: str, doc_id: str, item_id: str, **more: Value) -> str:
    """From this judgment to the "next" or the "previous" one."""
    return with_query(f"/judge/{way}", {"query": query_id, "doc": doc_id, "item": item_id, **more})


def bank_change(query_id: str, change: str) -> str:
    """Where the form is sent that adds an item ("add"), edits ("edit") or retires one ("retire")."""
    path = f"/bank/{segment(query_id)}/item"
    return path if change == "add" else f"{path}/{change}"


def support(**more: Value) -> str:
    """What a person should label next of what responses cite; and where a label is sent."""
    return with_query("/support", more)


def cited_sentence(name: str) -> str:
    """A sentence with a passage that it cites."""
    return f"/support/sentence/{segment(name)}"


def support_step(way: str, name: str) -> str:
    """From this sentence to the "next" or the "previous" one."""
    return with_query(f"/support/{way}", {"sentence": name})


def override() -> str:
    """Where a person's rating is sent."""
    return "/override"


def who(back: str = "") -> str:
    """Who is at the page."""
    return with_query("/who", {"back": back})


def local(path: str) -> str:
    """The path, where it is one of this page's own; else the leaderboard."""
    own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if own else board()


def static(name: str) -> str:
    """A file of the page's own."""
    return f"/static/{name}"
