"""The key to a server: read from the environment, sent, and never shown."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from trecexam.errors import GraderError

#: What a key that leaks into a text is replaced with.
HIDDEN = "[key]"
#: Servers repeat a key's beginning ("sk-abcd****"): from so many characters on that is hidden too.
_BEGINNING = 6


@dataclass(frozen=True)
class Secret:
    """A key, or none. Shown, printed or formatted it is empty of content; only `headers` gives it away."""

    _key: str = field(default="", repr=False)

    @classmethod
    def from_environment(cls, name: str | None) -> Secret:
        """The key in the environment variable `name`; none where no name is given.

        Raises:
            GraderError: the variable is not set, or holds what no key can be.
        """
        if name is None:
            return cls()
        key = os.environ.get(name, "").strip()
        if not key:
            raise GraderError(
                f"the environment variable {name} is not set: put the key into it, or set another `key_env` "
                "in [grader]"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            raise GraderError(
                f"the environment variable {name} holds no key: it has blanks or odd characters"
            )
        return cls(key)

    def headers(self) -> dict[str, str]:
        """What proves to the server who asks."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def hidden(self, text: str) -> str:
        """The text without the key, also where just its beginning stands in it."""
        if not self._key:
            return text
        if len(self._key) < 2 * _BEGINNING:
            return text.replace(self._key, HIDDEN)
        return self._pattern.sub(HIDDEN, text)

    @property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(re.escape(self._key[:_BEGINNING]) + r"[^\s\"',;<>]*")
