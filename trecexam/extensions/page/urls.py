"""The page's addresses. Run names, query, document and item ids hold anything: `/`, `#`, `%`, `..`, blanks.

A name is a path segment here, with `~` for the `%` of percent-encoding: what is between us and the browser
decodes `%2F` and takes `..` for a folder, and leaves these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import quote, unquote, urlencode

Value = str | int | None

#: Pages of one grader; a name means each {}.
_OF_GRADER = {
    "board": "/",
    "run": "/run/{}",
    "query": "/query/{}",
    "passage": "/query/{}/passage/{}",
    "result": "/result/{}",
    "section": "/section/{}",
    "bank": "/bank/{}",
    "add_item": "/bank/{}/item",
    "edit_item": "/bank/{}/item/edit",
    "retire_item": "/bank/{}/item/retire",
    "override": "/override",
    "assess": "/assess",
    "assess_passage": "/assess/passage/{}",
    "campaign": "/campaign",
    "agreement": "/campaign/agreement",
    "adjudicate": "/campaign/adjudicate",
}
#: Pages of all graders, or of none.
_OF_ALL = {
    "start": "/",
    "state": "/state",
    "who": "/who",
    "login": "/login",
    "logout": "/logout",
    "static": "/static/{}",
}


def segment(name: str) -> str:
    """Return a name as a path segment of ASCII letters, digits, `_`, `-`, `.` and `~`."""
    if not name.strip("."):
        # "", "." and "..": browsers resolve these.
        return "~" + name.replace(".", "~2E")
    return quote(name, safe="", errors="surrogateescape").replace("~", "%7E").replace("%", "~")


def name_of(segment: str) -> str:
    """Return the name that a path segment means."""
    if segment.startswith("~") and not segment[1:].replace("~2E", ""):
        return segment[1:].replace("~2E", ".")
    return unquote(segment.replace("~", "%"), errors="surrogateescape")


def with_query(path: str, params: Mapping[str, Value]) -> str:
    """Return the path with a query string; None and "" are left out."""
    pairs = {key: value for key, value in params.items() if value not in (None, "")}
    return f"{path}?{urlencode(pairs, errors='surrogateescape')}" if pairs else path


class Urls:
    """Addresses of the pages, by name: `urls.query("q1", show="items")`.

    Args:
        prefix: what stands before each path, as "/trec"; "" for nothing.
        grader_name: whose pages are meant; "" for those of the track's first grader.
    """

    def __init__(self, prefix: str = "", grader_name: str = "") -> None:
        self.prefix, self.grader_name = prefix, grader_name

    def __getattr__(self, page: str) -> Callable[..., str]:
        if page not in _OF_GRADER and page not in _OF_ALL:
            raise AttributeError(page)
        return partial(self._to, page)

    def _to(self, target: str, /, *names: str, **fields: Value) -> str:
        of_grader = target in _OF_GRADER
        path = (_OF_GRADER if of_grader else _OF_ALL)[target].format(*map(segment, names))
        if of_grader and self.grader_name:
            path = f"/grader/{segment(self.grader_name)}{path.rstrip('/')}"
        return with_query(self.prefix + path, fields)

    def of(self, grader: str) -> Urls:
        """Return the addresses of a grader's pages."""
        return Urls(self.prefix, grader)

    def bare(self, path: str) -> str:
        """Return a path of the page without the prefix and without the grader's name."""
        path = path.removeprefix(self.prefix)
        return "/" + path.partition("/grader/")[2].partition("/")[2] if path.startswith("/grader/") else path

    def local(self, path: str) -> str:
        """Return the path if it belongs to this page, else the leaderboard's."""
        is_local = (
            path.startswith(self.prefix + "/") and not path.startswith(("//", "/\\")) and path.isprintable()
        )
        # Browsers resolve these, and what lies above the prefix is another site's.
        is_local = is_local and {".", ".."}.isdisjoint(unquote(path.partition("?")[0]).split("/"))
        return path if is_local else self.board()
