"""Addresses in a copy, and the names of their files. Pure."""

from __future__ import annotations

import hashlib
import posixpath
import re
from urllib.parse import parse_qsl, urlsplit

#: Pages that show, and ask nothing of anybody: their paths.
_PAGES = re.compile(
    r"/|/rejected|/grader/[^/]+|(?:/grader/[^/]+)?(?:/queries|/disagreements|/holes|/section/[^/]+|/run/[^/]+"
    r"|/run/[^/]+/query/[^/]+|/query/[^/]+|/query/[^/]+/(?:passage|item)/[^/]+|/campaign|/campaign/agreement)"
)
#: Fields of addresses that make another page; others only order or filter it.
_KEPT = ("show", "table", "page", "format")
#: Characters of a name in a path up to which it is in full: file systems take 255.
_LONGEST = 120


def own_path(path: str) -> str:
    """The path of a page without its grader."""
    return re.sub(r"^/grader/[^/]+", "", path) or "/"


def canonical(href: str) -> str | None:
    """The canonical address of a link without its fragment; None if it leads out of the copy.

    Args:
        href: in a page, from the root on.
    """
    parts = urlsplit(href)
    if parts.scheme or parts.netloc or not _PAGES.fullmatch(parts.path):
        return None
    fields = dict(parse_qsl(parts.query, keep_blank_values=True))
    if any(field not in _KEPT for field in fields):
        return None
    if fields.get("page") == "1":
        del fields["page"]
    return parts.path + "".join(f"?{field}={fields[field]}" for field in _KEPT if field in fields)


def file_of(address: str) -> str:
    """The path in the copy of a canonical address, or of a file under /static.

    Segments of addresses have `~` before two hexadecimal digits alone, so that no two addresses have a file.
    """
    path, *fields = address.split("?")
    if path.startswith("/static/"):
        return path[1:]
    name = "/".join(map(_short, path[1:].split("/"))) or "index"
    ending = "html"
    for field in fields:
        key, value = field.split("=", 1)
        if key == "format":
            ending = value
        else:
            name += f"~{key}~{_short(re.sub(r'[^A-Za-z0-9_-]', lambda m: f'~{ord(m[0]):x}.', value))}"
    return f"{name}.{ending}"


def link(source: str, target: str) -> str:
    """The relative link from one file of the copy to another."""
    return posixpath.relpath(target, posixpath.dirname(source) or ".")


def _short(segment: str) -> str:
    if len(segment) <= _LONGEST:
        return segment
    return f"{segment[:80]}~-{hashlib.sha256(segment.encode()).hexdigest()[:24]}"
