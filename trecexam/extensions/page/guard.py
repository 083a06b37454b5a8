"""Access control: an ASGI middleware between the server and the pages.

Any web site in the reader's browser can send requests to a page on this machine. So the Host must be one of
ours (DNS rebinding), changes must come from our forms (cross-site request forgery), and other machines need
the token or a login, whose role limits the requests (`permissions.py`). Bodies are bounded, and read here.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trecexam.extensions.page import cookies
from trecexam.extensions.page.front import Front, address_of
from trecexam.extensions.page.permissions import roles_for
from trecexam.extensions.page.rendering import environment
from trecexam.extensions.page.urls import Urls

if TYPE_CHECKING:
    from trecexam.extensions.page.sessions import Sessions, Visitor

#: Limits: bytes of an address and of a form, fields of a form, and seconds to receive a form.
MAX_URL, MAX_BODY, MAX_FIELDS, BODY_SECONDS = 8192, 1 << 20, 200, 15.0
#: The form field of the token against forged requests.
FIELD = "csrf"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # Not "no-referrer": then browsers send `Origin: null` with our forms. Other sites get no referrer.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Middleware that passes permitted requests on, with the form's fields in `request.scope["form"]`.

    With users, `users.user_of(request)` is the user, and `request.scope["visitor"]` the `Visitor`.

    Args:
        token: the required token; None for free access.
        hosts: permitted host names beside this machine's; any address is permitted with a token or a login.
        cookie: the name of the token's cookie; ports of one machine share their cookies.
        front: the public address. sessions: logged-in users; None without logins.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str | None = None,
        hosts: Iterable[str] = (),
        cookie: str = "trecexam",
        front: Front | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        self.app = app
        self._token = token
        self._cookie = cookie
        self._front = front or Front()
        self._urls = Urls(self._front.prefix)
        self._sessions = sessions
        self._is_closed = token is not None or sessions is not None
        self._secret = secrets.token_bytes(32)
        self._hosts = {"localhost", "127.0.0.1", "::1", *(host.lower() for host in hosts)}
        if self._front.origin:
            self._hosts.add(self._front.host)
        if self._is_closed:
            self._hosts |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def _csrf(self, key: str) -> str:
        """Return the CSRF token of a user's forms."""
        return hmac.new(self._secret, f"csrf {key}".encode(), hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        path = self._front.path(scope)
        inside = {**self._front.inside(scope), "urls": self._urls}
        visitor = None if self._sessions is None else self._sessions.visitor(scope)
        inside["csrf"] = csrf = self._csrf("" if visitor is None else visitor.key)
        if visitor is not None:
            inside["visitor"], inside["trecexam.user"] = visitor, visitor.user

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                # Browsers may cache our files, but must revalidate them.
                headers.setdefault("cache-control", "no-cache" if path.startswith("/static/") else "no-store")
            await send(message)

        refused = self._refused(scope)
        if refused is None and self._sessions is not None and self._sessions.users.trouble:
            refused = None if _says_nothing(path) else _closed(self._urls)
        elif refused is None and visitor is not None:
            refused = _refused_to(visitor, inside, path)
        elif refused is None and self._token is not None and not _says_nothing(path):
            refused = self._welcome(inside, self._token)
        if refused is None and scope["method"] == "POST":
            form = await _form(inside, receive)
            if isinstance(form, Response):
                refused = form
            elif not hmac.compare_digest(form.pop(FIELD, "").encode(), csrf.encode()):
                refused = plain_page(
                    self._urls,
                    403,
                    "This form belongs to an earlier start of the page or to another page, and nothing was "
                    "saved. Go back, reload the "
                    "page, and send it again.",
                )
            else:
                inside["form"] = form
        await (refused or self.app)(inside, receive, guarded)

    def _refused(self, scope: Scope) -> Response | None:
        """Return the response to an invalid request."""
        headers = Headers(scope=scope)
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MAX_URL:
            return plain_page(self._urls, 414, "This address is too long.")
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            return plain_page(
                self._urls, 405, "Only GET, HEAD and POST are answered here.", {"allow": "GET, HEAD, POST"}
            )
        host = headers.get("host", "")
        if not self._is_ours(host):
            return plain_page(
                self._urls,
                421,
                "The page is not at this name. Open the address that `trecexam serve` printed.",
            )
        if scope["method"] == "POST" and not _from_here(headers, host, self._front.origin):
            return plain_page(self._urls, 403, "This request comes from another site, and was rejected.")
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if "@" in host:
            return False
        if name in self._hosts:
            return True
        # Rebinding needs a name; addresses are safe.
        return self._is_closed and address_of(name) is not None

    def _welcome(self, scope: Scope, token: str) -> Response | None:
        """Return None for users with the token's cookie, else a response that sets it, or the token form."""
        cookie_value = hmac.new(token.encode(), b"trecexam cookie", hashlib.sha256).hexdigest()
        shown_cookies = cookies.sent(scope, self._cookie)
        if any(hmac.compare_digest(cookie.encode(), cookie_value.encode()) for cookie in shown_cookies):
            return None
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        url_tokens = [value for name, value in pairs if name == "token"]
        if scope["method"] == "GET" and url_tokens:
            if not hmac.compare_digest(url_tokens[0].encode(), token.encode()):
                return plain_page(self._urls, 401, "This token is wrong.", ask=True)
            rest = urlencode([(name, value) for name, value in pairs if name != "token"])
            path = scope["raw_path"].decode("latin-1").split("?")[0]
            # No redirection: after a link in a mail, browsers send no strict cookie to where that leads.
            response = plain_page(
                self._urls, 200, target="/" + path.lstrip("/") + (f"?{rest}" if rest else "")
            )
            cookies.keep(self._front, response, self._cookie, cookie_value)
            return response
        return plain_page(
            self._urls, 401, "This page needs the token that `trecexam serve` printed.", ask=True
        )


def plain_page(
    urls: Urls,
    status: int,
    what: str = "",
    headers: dict[str, str] | None = None,
    *,
    ask: bool = False,
    home: bool = False,
    target: str = "",
) -> HTMLResponse:
    """Return a page with one message, and a token form (`ask`), a link home, or the way on to `target`."""
    values = {"urls": urls, "status": status, "what": what, "ask": ask, "home": home, "target": target}
    return HTMLResponse(environment().get_template("plain.html").render(values), status, headers)


def _says_nothing(path: str) -> bool:
    """Return True if the response contains no data of the track."""
    return path.startswith("/static/") or path == "/healthz"


def _closed(urls: Urls) -> Response:
    return plain_page(
        urls,
        503,
        "Your change was rejected, because the page cannot read who may log in. Tell the organizer. When "
        "that is corrected, go back and send it again.",
    )


def _refused_to(visitor: Visitor, scope: Scope, path: str) -> Response | None:
    """Return the response to a user without permission."""
    roles, urls = roles_for(scope["method"], path), scope["urls"]
    if visitor.user.role in roles:
        return None
    is_get = scope["method"] != "POST"
    if visitor.user.role != "visitor":
        if path == "/" and is_get:
            return RedirectResponse(urls.assess(), 303)
        what = (
            "Your role may not open this page. Ask the organizer of the track."
            if roles
            else "There is no such page."
        )
        return plain_page(urls, 403 if roles else 404, what, home=True)
    if is_get and "x-refresh" not in Headers(scope=scope):
        back = scope["raw_path"].decode("latin-1").split("?")[0]
        query = scope["query_string"].decode("latin-1")
        return RedirectResponse(urls.login(back=f"{back}?{query}" if query else back), 303)
    return plain_page(
        urls,
        401,
        "You are not logged in any more, and your change was rejected. Log in in another tab, come back to "
        "the "
        "page before this one, and send it again.",
        home=True,
    )


def _from_here(headers: Headers, host: str, public: str) -> bool:
    """Return True if the request comes from one of our pages, according to its headers."""
    if headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = headers.get("origin")
    return origin is None or origin in {f"http://{host}", f"https://{host}", public or f"http://{host}"}


async def _form(scope: Scope, receive: Receive) -> dict[str, str] | Response:
    """Return the fields of the request's form, or the reason for rejecting it. Reads at most `MAX_BODY`."""
    headers, urls = Headers(scope=scope), scope["urls"]
    if (
        headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/x-www-form-urlencoded"
    ):
        return plain_page(urls, 415, "This address accepts only forms.")
    length = headers.get("content-length", "0")
    if not length.isdigit() or len(length) > 12 or int(length) > MAX_BODY:
        return _too_much(urls)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return plain_page(urls, 400, "The request ended early.")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > MAX_BODY:
                    return _too_much(urls)
    except TimeoutError:
        return plain_page(urls, 408, "The form took too long to arrive.", {"connection": "close"})
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except (UnicodeDecodeError, ValueError):
        return plain_page(
            urls, 400, f"The form cannot be read: it must be UTF-8, with {MAX_FIELDS} fields at the most."
        )
    form = dict(pairs)
    if len(form) != len(pairs):
        return plain_page(urls, 400, "The form has a field twice.")
    return form


def _too_much(urls: Urls) -> Response:
    return plain_page(
        urls, 413, f"The form is too large: {MAX_BODY >> 20} MiB at the most.", {"connection": "close"}
    )
