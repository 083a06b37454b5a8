"""Errors of readers."""

from __future__ import annotations

import os
import re
from typing import Literal

#: Controls but the line end, bidirectional embeddings, overrides and isolates, invisible tags, surrogates.
CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def escaped(text: str) -> str:
    """The text with matching characters replaced by Python escapes."""
    return CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


#: What is lost when an input is rejected: the whole file, a line that cannot be read, a response that was
#: read and does not count, cells that get no grade.
Lost = Literal["file", "line", "response", "cell"]


class ConversionError(ValueError):
    """A file or line that was rejected.

    Attributes:
        path: the file, as the caller named it.
        line: 1-based line number, or None where the whole file is meant.
        reason: what is wrong and what to do, on one line; control characters are escaped.
        lost: what is lost where the reader skips it and continues.
    """

    def __init__(
        self, path: str | os.PathLike[str], line: int | None, reason: str, lost: Lost = "line"
    ) -> None:
        self.path = os.fspath(path)
        self.line = line
        self.reason = escaped(" ".join(reason.split()))
        self.lost: Lost = lost
        super().__init__(self.path, line, self.reason)

    def __str__(self) -> str:
        path = escaped(self.path).replace("\n", "\\n")
        where = path if self.line is None else f"{path}:{self.line}"
        return f"{where}: {self.reason}"


#: So many bad lines of a file are named, and so many are looked for at most.
_NAMED, _COUNTED = 20, 1_000


class BadLines:
    """Collects the errors of a file that is rejected as a whole, and raises them as one at the end.

    Used as a context manager. The error is the first one; it names the other bad lines.
    """

    def __init__(self) -> None:
        self._errors: list[ConversionError] = []

    def __bool__(self) -> bool:
        return bool(self._errors)

    def add(self, error: ConversionError) -> None:
        """Stores an error.

        Raises:
            ConversionError: there are so many that the rest of the file does not matter.
        """
        self._errors.append(error)
        if len(self._errors) >= _COUNTED:
            raise self._errors.pop()

    def __enter__(self) -> BadLines:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ConversionError):
            self._errors.append(error)
        if not self._errors or not isinstance(error, ConversionError | None):
            return
        first, *rest = self._errors
        others = [line for line in dict.fromkeys(each.line for each in rest) if line != first.line]
        if not others:
            raise first from None
        lines = ", ".join(map(str, others[: _NAMED - 1]))
        many = f" and {len(others) - _NAMED + 1:,} more" if len(others) >= _NAMED else ""
        if len(self._errors) >= _COUNTED:
            many += " or more"
        raise ConversionError(
            first.path,
            first.line,
            f"{first.reason}; also bad: line{'s' * (len(others) > 1)} {lines}{many}",
            first.lost,
        ) from None


class StoppedError(Exception):
    """Reading was stopped, see `converters.lines.stoppable`."""
