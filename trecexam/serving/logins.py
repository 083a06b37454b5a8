"""Whether somebody is who they say: slowly, for who guesses, and as slowly for names that nobody has."""

from __future__ import annotations

import asyncio
import hmac
from collections import OrderedDict
from typing import TYPE_CHECKING

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from trecexam.serving.guard import Attempts
from trecexam.serving.users import LONGEST_PASSWORD, digest

if TYPE_CHECKING:
    from trecexam.serving.users import UserEntry, Users

#: Wrong logins of an address that are answered at once: a class logs in from behind one.
FREE_OF_ADDRESS = 60
#: Passwords that are looked at at a time: each takes 64 MiB and a core.
AT_ONCE = 2
#: Names and addresses that have logged in, which are remembered.
_KNOWN = 10_000


class TooManyError(Exception):
    """So many wrong logins came that this one is not looked at."""


class Logins:
    """Looks at names with their passwords or tokens."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._addresses = Attempts(FREE_OF_ADDRESS)
        self._names = Attempts()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._hashing = asyncio.Semaphore(AT_ONCE)

    async def entry(self, name: str, secret: str, address: str) -> UserEntry | None:
        """The user of that name, if that is the password or token; else None.

        Args:
            address: from where it is said.

        Raises:
            TooManyError: it was not looked at.
        """
        name_key, known = name.casefold()[:200], f"{address} {name.casefold()[:200]}"
        # Who guesses a name elsewhere does not keep out who has logged in from here before.
        name_key = known if known in self._known else name_key
        waits = (self._addresses.wait(address), self._names.wait(name_key))
        if None in waits:
            raise TooManyError
        await asyncio.sleep(max(wait for wait in waits if wait is not None))
        entry = self._users.get(name)
        password = entry.password if entry is not None else ""
        # A name that nobody has takes as long as one with a password.
        hashed = password or self._users.any_password()
        is_password = False
        if hashed:
            async with self._hashing:
                is_password = await asyncio.to_thread(_matches, hashed, secret) and bool(password)
        token = entry.token_sha256 if entry is not None else ""
        is_token = hmac.compare_digest(digest(secret), token or "0" * 64) and bool(token)
        if not (is_password or is_token):
            return None
        self._addresses.right(address)
        self._names.right(name_key)
        self._known[known] = None
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return entry


def _matches(hashed: str, secret: str) -> bool:
    try:
        return PasswordHasher().verify(hashed, secret[:LONGEST_PASSWORD].encode("utf-8", "surrogatepass"))
    except (Argon2Error, InvalidHashError):
        return False
