"""The public address of the page, and trusted proxies."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trecexam.errors import TrecexamError
from trecexam.extensions.page.permissions import TABLE
from trecexam.extensions.page.urls import Place

if TYPE_CHECKING:
    from starlette.types import Scope

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
#: First segments of the page's own paths: a prefix that begins with one could be mistaken for a page.
OURS = frozenset(path.split("/")[1] for path in TABLE)
_PREFIX = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


@dataclass(frozen=True)
class Front:
    """The public address and trusted proxies of the page.

    Attributes:
        origin: scheme, name and port as their browsers say them, "https://nuggets.uni.edu"; "" where nothing
            is known.
        prefix: what stands before each path, as "/trec"; "" for nothing.
        trusted: from where proxies speak whose headers are believed.
        header: the header, in lower case, in which these name the user; "" for none.
    """

    origin: str = ""
    prefix: str = ""
    trusted: tuple[Network, ...] = ()
    header: str = ""

    @classmethod
    def of(
        cls,
        public_url: str = "",
        root_path: str = "",
        trusted_proxies: Iterable[str] = (),
        trust_header: str = "",
    ) -> Front:
        """A front from the options of `trecexam serve`.

        Raises:
            TrecexamError: one of them cannot be, or does not go with another.
        """
        origin, path = _origin(public_url) if public_url else ("", "")
        root = "/" + root_path.strip("/") if root_path.strip("/") else ""
        if path and root and path != root:
            raise TrecexamError(
                f"--root-path {root_path} is not the path of --public-url, {path}: leave it out"
            )
        prefix = root or path
        if prefix and not _PREFIX.fullmatch(prefix):
            raise TrecexamError(f"the path {prefix!r} before the page's path: use letters, digits, - and _")
        if prefix.split("/")[1:2] and prefix.split("/")[1] in OURS:
            raise TrecexamError(
                f"the path {prefix} is a path of the page itself: use another one, such as /trec"
            )
        if trust_header and not _HEADER.fullmatch(trust_header):
            raise TrecexamError(
                f"--trust-header {trust_header!r} is not the name of a header, such as X-Remote-User"
            )
        trusted = tuple(_network(text) for text in trusted_proxies)
        if trust_header and not trusted:
            raise TrecexamError(
                "--trust-header needs --trusted-proxy, because anybody could send the header: give the "
                "proxy's address"
            )
        return cls(origin, prefix, trusted, trust_header.lower())

    @property
    def url(self) -> str:
        """The public address; "" if unknown."""
        return f"{self.origin}{self.prefix}/" if self.origin else ""

    @property
    def place(self) -> Place:
        """Scheme, host and path for addresses and cookies."""
        return Place(self.prefix, self.origin.startswith("https:"))

    @property
    def host(self) -> str:
        """The name in `origin`; "" without one."""
        return urlsplit(self.origin).hostname or ""

    def path(self, scope: Scope) -> str:
        """The requested path without the prefix, whether or not the proxy removed it."""
        path: str = scope["path"]
        return path[len(self.prefix) :] or "/" if self._has_prefix(path) else path

    def inside(self, scope: Scope) -> Scope:
        """The request with the prefix and the public scheme and host."""
        if not (self.prefix or self.origin):
            return scope
        raw = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        changed = {
            "path": self.prefix + self.path(scope),
            "raw_path": (raw if self._has_prefix(raw.partition("?")[0]) else self.prefix + raw).encode(
                "latin-1"
            ),
            "root_path": self.prefix,
        }
        if self.origin:
            scheme, _, host = self.origin.partition("://")
            headers = [pair for pair in scope["headers"] if pair[0] != b"host"]
            changed |= {"scheme": scheme, "headers": [(b"host", host.encode()), *headers]}
        return {**scope, **changed}

    def _has_prefix(self, path: str) -> bool:
        return bool(self.prefix) and (path == self.prefix or path.startswith(f"{self.prefix}/"))

    def trusts(self, scope: Scope) -> bool:
        """Whether a trusted proxy sent this request."""
        address = address_of((scope.get("client") or ("", 0))[0])
        return address is not None and any(address in network for network in self.trusted)

    def person(self, scope: Scope) -> str | None:
        """The user's name from a trusted proxy; "" if invalid or given twice; None without one."""
        if not self.header or not self.trusts(scope):
            return None
        values = [value for name, value in scope["headers"] if name == self.header.encode()]
        if not values or values == [b""]:
            return None
        try:
            return values[0].decode().strip() if len(values) == 1 else ""
        except UnicodeDecodeError:
            return ""


def _origin(public_url: str) -> tuple[str, str]:
    """The origin as browsers send it, and the path without a slash at its end."""
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


def _network(text: str) -> Network:
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise TrecexamError(
            f"--trusted-proxy {text!r} is neither an address nor a network, such as 127.0.0.1 or 10.0.3.0/24"
        ) from None
    if network.prefixlen == 0:
        raise TrecexamError(f"--trusted-proxy {text} would trust everybody: give the proxy's address")
    return network


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parses an IP address, with IPv4-mapped IPv6 as IPv4; None if invalid."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
