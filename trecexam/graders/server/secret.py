"""The key to a server: read from the environment, sent, and never shown."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from urllib.parse import quote

from trecexam.errors import GraderError

#: What a key that leaks into a text is replaced with.
HIDDEN = "[key]"
#: Characters: a shorter key guards nothing, and is a word of honest answers ("4", "none").
_SHORTEST = 5
#: From so many characters on a key is not an ordinary word, and is hidden inside of other words too.
_NO_WORD = 8
#: Servers repeat a key's beginning ("sk-abcd****"): so much is hidden where a word begins, and anywhere.
_BEGINNING, _LONG_BEGINNING = 6, 12
#: And its end: tails of so many characters are hidden.
_TAIL = 8


@dataclass(frozen=True)
class Secret:
    """A key, or none, and other headers. Shown, printed or formatted it is empty of content; only `headers`
    gives it away.
    """

    _key: str = field(default="", repr=False)
    _others: tuple[tuple[str, str, bool], ...] = field(default=(), repr=False)

    @classmethod
    def from_environment(cls, name: str | None, headers: Mapping[str, str] = MappingProxyType({})) -> Secret:
        """Return the key in the environment variable `name`; none where no name is given.

        Args:
            headers: more of them; the value "$NAME" is read from the environment, and as secret as a key.

        Raises:
            GraderError: a variable is not set, or holds what no key can be.
        """
        others = (
            (header, cls._read(value[1:], "headers") if value.startswith("$") else value, value[:1] == "$")
            for header, value in headers.items()
        )
        return cls("" if name is None else cls._read(name, "key_env"), tuple(others))

    @staticmethod
    def _read(name: str, setting: str) -> str:
        key = os.environ.get(name, "").strip()
        if not key:
            raise GraderError(
                f"the environment variable {name} is not set: put the key into it, or name another one in "
                f"`{setting}` in [grader]"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            raise GraderError(
                f"the environment variable {name} holds no key: it has blanks or unusual characters"
            )
        if len(key) < _SHORTEST:
            raise GraderError(
                f"the environment variable {name} holds no key: it has less than {_SHORTEST} characters; "
                f"leave it out of `{setting}` in [grader] where the server wants none"
            )
        return key

    def headers(self) -> dict[str, str]:
        """Return the authentication for the server, and the other headers, which may be another one."""
        bearer = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        return {**bearer, **{name: value for name, value, _ in self._others}}

    def hidden(self, text: str) -> str:
        """Return the text without a key, plain or encoded, in any case; also where just its beginning or its
        end is in it.
        """
        for pattern in self._patterns:
            text = pattern.sub(HIDDEN, text)
        return text

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], ...]:
        keys = (self._key, *(value for _, value, is_secret in self._others if is_secret))
        return tuple(_pattern(key) for key in keys if key)


def _pattern(key: str) -> re.Pattern[str]:
    forms = {
        key,
        quote(key),
        quote(key, safe=""),
        json.dumps(key)[1:-1],
        html.escape(key),
        base64.b64encode(key.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(key.encode()).decode().rstrip("="),
    }
    if len(key) >= _NO_WORD:
        forms |= {form[start:] for form in tuple(forms) for start in range(len(form) - _TAIL + 1)}
    whole = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    if len(key) < _NO_WORD:
        return re.compile(rf"(?<![A-Za-z0-9])(?:{whole})(?![A-Za-z0-9])", re.IGNORECASE)
    if len(key) < 2 * _BEGINNING:
        return re.compile(rf"(?:{whole})=*", re.IGNORECASE)
    begun = rf"(?<![A-Za-z0-9]){re.escape(key[:_BEGINNING])}|{re.escape(key[:_LONG_BEGINNING])}"
    return re.compile(rf"(?:{whole}|{begun})[^\s\"',;<>]*", re.IGNORECASE)
