"""Who may ask the page what: everything between the server and the pages, as one ASGI middleware.

A page on this machine can be reached by every web site that its reader has open, so: the Host must be one of
ours (DNS rebinding), what changes something must come from a form of ours (cross-site request forgery), and
beyond this machine nothing goes without the token. Bodies are bounded, and read here.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
import socket
import time
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Bytes of an address and of a form, fields of a form, seconds in which a form must have come.
MAX_URL, MAX_BODY, MAX_FIELDS, BODY_SECONDS = 8192, 1 << 20, 200, 15.0
#: The form field of the token against forged requests.
FIELD = "csrf"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: So many wrong tokens are answered at once; from then on each one waits twice as long as the one before,
#: in seconds, and one that would wait longer than `PATIENCE` is not looked at.
FREE, FIRST_WAIT, LONGEST_WAIT, PATIENCE = 5, 0.5, 4.0, 30.0
#: Addresses that are remembered with their wrong tokens.
_ADDRESSES = 1_000
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not "no-referrer": then browsers say `Origin: null` of our own forms. To others nothing is told.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Attempts:
    """When a token may be looked at that somebody shows: guessing takes its time, also many at once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, float]] = {}

    def wait(self, address: str) -> float | None:
        """Seconds until it is this one's turn, which counts as wrong until `right`; None: it will not be."""
        now = time.monotonic()
        wrong, free = self._known.pop(address, (0, now))
        begin = max(now, free)
        admitted = begin - now <= PATIENCE
        if admitted:
            wrong += 1
            free = begin
            if wrong >= FREE:
                free += min(FIRST_WAIT * 2 ** min(wrong - FREE, 20), LONGEST_WAIT)
        self._known[address] = wrong, free
        if len(self._known) > _ADDRESSES:
            del self._known[next(iter(self._known))]
        return begin - now if admitted else None

    def right(self, address: str) -> None:
        self._known.pop(address, None)


class Guard:
    """Lets through what may be asked, with the form's fields as `request.scope["form"]`.

    Args:
        token: what everybody must show; None where nobody must.
        hosts: names that the page may be reached by, beside those of this machine; and any address, where
            there is a token.
        cookie: the name of the cookie; ports of one machine share their cookies.
    """

    def __init__(
        self, app: ASGIApp, token: str | None = None, hosts: Iterable[str] = (), cookie: str = "trecexam"
    ) -> None:
        self.app = app
        self._token = token
        self._cookie = cookie
        self._attempts = Attempts()
        self._secret = secrets.token_bytes(32)
        self._hosts = {"localhost", "127.0.0.1", "::1", *(host.lower() for host in hosts)}
        if token is not None:
            self._hosts |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    @property
    def csrf(self) -> str:
        """What every form of ours carries."""
        return hmac.new(self._secret, b"csrf", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        scope["csrf"] = self.csrf

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                # Our own files may be kept, and are asked for again in case they changed.
                kept = "no-cache" if scope["path"].startswith("/static/") else "no-store"
                headers.setdefault("cache-control", kept)
            await send(message)

        refused = await self._refused(scope)
        if refused is None and scope["method"] == "POST":
            form = await _form(scope, receive)
            if isinstance(form, Response):
                refused = form
            elif not hmac.compare_digest(form.pop(FIELD, "").encode(), self.csrf.encode()):
                refused = plain_page(
                    403,
                    "This form is of an earlier start of the page, or not of this page. Go back, reload the "
                    "page, and send it again.",
                )
            else:
                scope["form"] = form
        await (refused or self.app)(scope, receive, guarded)

    async def _refused(self, scope: Scope) -> Response | None:
        """The answer to a request that may not pass."""
        headers = Headers(scope=scope)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL:
            return plain_page(414, "This address is too long.")
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            return plain_page(405, "Only GET, HEAD and POST are answered here.", {"allow": "GET, HEAD, POST"})
        host = headers.get("host", "")
        if not self._is_ours(host):
            return plain_page(
                421, "The page is not at this name. Open it by the address that `trecexam serve` printed."
            )
        if scope["method"] == "POST" and not _from_here(headers, host):
            return plain_page(403, "This request comes from another site, and was not taken.")
        if self._token is None or scope["path"].startswith("/static/") or scope["path"] == "/healthz":
            return None
        return await self._welcome(scope, headers, self._token)

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if "@" in host:
            return False
        if name in self._hosts:
            return True
        # Rebinding needs a name that the attacker can point elsewhere; an address is what it is.
        return self._token is not None and _is_address(name)

    async def _welcome(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        """None for who has shown the token; the cookie for who shows it now; else how to get in.

        A cookie is made of the token, so that it would do to guess that: a wrong one is a wrong token.
        """
        kept = hmac.new(token.encode(), b"trecexam cookie", hashlib.sha256).hexdigest()
        cookies = _cookies(headers, self._cookie)
        if any(hmac.compare_digest(cookie.encode(), kept.encode()) for cookie in cookies):
            return None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        shown = [value for name, value in pairs if name == "token"]
        address = (scope.get("client") or ("", 0))[0]
        if shown or cookies:
            wait = self._attempts.wait(address)
            if wait is None:
                return plain_page(429, "Too many wrong tokens came from this address. Try again in a minute.")
            await asyncio.sleep(wait)
        if scope["method"] == "GET" and shown:
            if not hmac.compare_digest(shown[0].encode(), token.encode()):
                return plain_page(401, "This is not the token.", ask=True)
            self._attempts.right(address)
            rest = urlencode([(name, value) for name, value in pairs if name != "token"])
            path = scope["raw_path"].decode("latin-1").split("?")[0]
            # No redirection: after a link in a mail, browsers send no strict cookie to where that leads.
            response = _onwards("/" + path.lstrip("/") + (f"?{rest}" if rest else ""))
            response.set_cookie(self._cookie, kept, path="/", httponly=True, samesite="strict")
            return response
        return plain_page(401, "This page needs the token that `trecexam serve` printed.", ask=True)


def plain_page(
    status: int, what: str, headers: dict[str, str] | None = None, *, ask: bool = False
) -> HTMLResponse:
    """A page that says one thing, which is no user's text; with a form for the token."""
    form = (
        '<form method="get" action="/"><label for="token">Token</label> '
        '<input id="token" name="token" type="password" autocomplete="off" required> '
        "<button>Open the page</button></form>"
    )
    return _page(status, f"<h1>{status}</h1><p>{what}</p>{form if ask else ''}", headers=headers)


def _onwards(target: str) -> HTMLResponse:
    from html import escape

    address = escape(target, quote=True)
    return _page(
        200,
        f'<p>Welcome. <a href="{address}">Go on</a></p>',
        f'<meta http-equiv="refresh" content="0; url={address}">',
    )


def _page(status: int, body: str, head: str = "", headers: dict[str, str] | None = None) -> HTMLResponse:
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>trecexam</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
        f'<link rel="stylesheet" href="/static/style.css">{head}</head>'
        f'<body><main id="main">{body}</main></body></html>',
        status,
        headers,
    )


def _cookies(headers: Headers, name: str) -> Collection[str]:
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    return [value for key, _, value in pairs if key.strip() == name]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _from_here(headers: Headers, host: str) -> bool:
    """Whether the browser, as far as it says, sends this from a page of ours."""
    if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    return origin is None or origin in {f"http://{host}", f"https://{host}"}


async def _form(scope: Scope, receive: Receive) -> dict[str, str] | Response:
    """The fields of the request's form, or why it is not taken. Never reads more than `MAX_BODY`."""
    headers = Headers(scope=scope)
    if (
        headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/x-www-form-urlencoded"
    ):
        return plain_page(415, "Only forms are taken here.")
    length = headers.get("content-length", "0")
    if not length.isdigit() or len(length) > 12 or int(length) > MAX_BODY:
        return _too_much()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return plain_page(400, "The request ended early.")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > MAX_BODY:
                    return _too_much()
    except TimeoutError:
        return plain_page(408, "The form took too long to come.", {"connection": "close"})
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except (UnicodeDecodeError, ValueError):
        return plain_page(
            400, f"The form cannot be read: it must be UTF-8, with {MAX_FIELDS} fields at the most."
        )
    form = dict(pairs)
    if len(form) != len(pairs):
        return plain_page(400, "A field of the form stands twice.")
    return form


def _too_much() -> Response:
    return plain_page(
        413, f"The form is too large: {MAX_BODY >> 20} MiB at the most.", {"connection": "close"}
    )
