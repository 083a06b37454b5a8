"""The public address of the page."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trecexam.errors import TrecexamError
from trecexam.extensions.page.permissions import TABLE

if TYPE_CHECKING:
    from starlette.types import Scope

#: First segments of the page's paths, not allowed as the start of a prefix.
OURS = frozenset(path.split("/")[1] for path in TABLE)
_PREFIX = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")


@dataclass(frozen=True)
class Front:
    """The public address of the page.

    Attributes:
        origin: scheme, name and port as their browsers say them, "https://nuggets.uni.edu"; "" if unknown.
        prefix: path prefix, such as "/trec", or "".
    """

    origin: str = ""
    prefix: str = ""

    @classmethod
    def of(cls, public_url: str = "") -> Front:
        """Return a front from the option of `trecexam serve`.

        Raises:
            TrecexamError: an invalid address.
        """
        origin, prefix = _origin(public_url) if public_url else ("", "")
        if prefix and not _PREFIX.fullmatch(prefix):
            raise TrecexamError(f"the path {prefix!r} before the page's path: use letters, digits, - and _")
        if prefix.split("/")[1:2] and prefix.split("/")[1] in OURS:
            raise TrecexamError(
                f"the path {prefix} is a path of the page itself: use another one, such as /trec"
            )
        return cls(origin, prefix)

    @property
    def url(self) -> str:
        """The public address; "" if unknown."""
        return f"{self.origin}{self.prefix}/" if self.origin else ""

    @property
    def is_secure(self) -> bool:
        """True if the public address uses https."""
        return self.origin.startswith("https:")

    @property
    def host(self) -> str:
        """The name in `origin`; "" without one."""
        return urlsplit(self.origin).hostname or ""

    def path(self, scope: Scope) -> str:
        """Return the requested path without the prefix, whether or not the proxy removed it."""
        path: str = scope["path"]
        return path[len(self.prefix) :] or "/" if self._has_prefix(path) else path

    def inside(self, scope: Scope) -> Scope:
        """Return the request with the prefix and the public scheme and host."""
        if not self.origin:
            return scope
        raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        scheme, _, host = self.origin.partition("://")
        headers = [pair for pair in scope["headers"] if pair[0] != b"host"]
        return {
            **scope,
            "path": self.prefix + self.path(scope),
            "raw_path": (raw if self._has_prefix(raw.partition("?")[0]) else self.prefix + raw).encode(
                "latin-1"
            ),
            "root_path": self.prefix,
            "scheme": scheme,
            "headers": [(b"host", host.encode()), *headers],
        }

    def _has_prefix(self, path: str) -> bool:
        return bool(self.prefix) and (path == self.prefix or path.startswith(f"{self.prefix}/"))


def _origin(public_url: str) -> tuple[str, str]:
    """Return the origin as browsers send it, and the path without a slash at its end."""
    try:
        parts = urlsplit(public_url)
        name, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError:
        name, port, parts = "", None, urlsplit("")
    if (
        parts.scheme not in {"http", "https"}
        or not name
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
    ):
        raise TrecexamError(
            f"--public-url {public_url!r}: give an address such as https://nuggets.uni.edu/trec"
        )
    host = f"[{name}]" if ":" in name else name
    port_suffix = "" if port in {None, {"http": 80, "https": 443}[parts.scheme]} else f":{port}"
    return f"{parts.scheme}://{host}{port_suffix}", parts.path.rstrip("/")


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an IP address, with IPv4-mapped IPv6 as IPv4; None if invalid."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
