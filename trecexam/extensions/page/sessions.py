"""Login sessions: from a request's cookie to its user."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from trecexam.extensions.page import cookies
from trecexam.extensions.page.users import VISITOR, User, Users

if TYPE_CHECKING:
    from starlette.types import Scope

    from trecexam.extensions.page.front import Front

#: Seconds after which a login ends: without a click, and in any case.
IDLE, LONGEST = 2 * 3600.0, 12 * 3600.0
#: Logins that are remembered.
MOST = 10_000


class Visitor(NamedTuple):
    """The user of a request.

    Attributes:
        user: `VISITOR` where nobody is logged in.
        key: unique secret of the browser or user for form tokens.
        fresh: new cookie for a browser without one, to protect the login form.
    """

    user: User
    key: str
    fresh: str = ""


@dataclass
class _Login:
    entry: User
    begun: float
    used: float


class Sessions:
    """The logins, stored only in memory.

    Args:
        users: who may log in.
        front: how people reach the page.
        cookie: the cookie's name, to which a prefix comes that browsers hold it to, where they can.
    """

    def __init__(self, users: Users, front: Front, cookie: str) -> None:
        self.users = users
        self.cookie = ("__Secure-" if front.prefix else "__Host-") * front.is_secure + cookie
        # By a digest: how long it takes to look up says nothing of an id.
        self._logins: OrderedDict[bytes, _Login] = OrderedDict()

    def begin(self, entry: User) -> str:
        """Return a fresh cookie for a new login, to prevent session fixation."""
        cookie = secrets.token_urlsafe(32)
        now = time.monotonic()
        self._logins[_digest(cookie)] = _Login(entry, now, now)
        while len(self._logins) > MOST:
            self._logins.popitem(last=False)
        return cookie

    def end(self, scope: Scope) -> None:
        """End the login of the user."""
        for cookie in cookies.sent(scope, self.cookie):
            self._logins.pop(_digest(cookie), None)

    def visitor(self, scope: Scope) -> Visitor:
        """Return the user of a request, from the current users file."""
        sent = cookies.sent(scope, self.cookie)
        for cookie in sent:
            user = self._logged_in(cookie, is_click=not _has(scope, b"x-refresh"))
            if user is not None:
                return Visitor(user, f"login {cookie}")
        if sent:
            return Visitor(VISITOR, f"visitor {sent[0]}")
        fresh = secrets.token_urlsafe(32)
        return Visitor(VISITOR, f"visitor {fresh}", fresh)

    def _logged_in(self, cookie: str, *, is_click: bool) -> User | None:
        key = _digest(cookie)
        login = self._logins.get(key)
        if login is None:
            return None
        now, entry = time.monotonic(), self.users.get(login.entry.name)
        is_over = now - login.used > IDLE or now - login.begun > LONGEST
        # Users with a new token have to log in with it.
        if is_over or (entry is not None and entry.token_sha256 != login.entry.token_sha256):
            del self._logins[key]
            return None
        # Removed users are logged out; but some editors save an empty file first, which is to end no login.
        if entry is None:
            return None
        # Automatic requests do not extend a login.
        if is_click:
            login.used = now
        return entry


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("latin-1", "replace")).digest()


def _has(scope: Scope, header: bytes) -> bool:
    return any(name == header for name, _ in scope["headers"])
