"""Errors that a user can cause and mend: shown as one line, without a traceback."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

#: Letters of a word, or of a text in quotes, that a message has at most, and that it keeps of each end.
_MOST, _END = 300, 120
_LONG = re.compile(rf"(?<!\w)'[^']{{{_MOST},}}'(?!\w)|\S{{{_MOST},}}")


def shortened(message: str) -> str:
    """Return a message whose long words and quoted texts are cut in the middle."""
    return _LONG.sub(lambda match: f"{match[0][:_END]}...{match[0][-_END:]}", message)


class TrecexamError(Exception):
    """Something a user can mend. The message is one line that says what is wrong and what to do."""

    def __init__(self, reason: str, *, path: Path | str | None = None, line: int | None = None) -> None:
        self.reason = shortened(" ".join(reason.split()))
        self.path = None if path is None else str(path)
        self.line = line
        super().__init__(self.reason)

    def __str__(self) -> str:
        if self.path is None:
            return self.reason
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.reason}"


class ConfigError(TrecexamError):
    """A setting in trecexam.toml that cannot be used."""


class TrackError(TrecexamError):
    """A track folder that lacks something a command needs."""


class LackingError(TrackError):
    """A need of a grader is not met that only a person can meet (a test bank, a language model).

    Other graders of the track go on.
    """


class StoreError(TrecexamError):
    """The grade store cannot be opened, read or written."""


class GraderError(TrecexamError):
    """A grader that is not known, not installed, or lacks the requested feature."""


class MeasureError(TrecexamError, ValueError):
    """A measure that is not known, or cannot be computed with its parameters or on this side."""


class LockedError(TrecexamError):
    """The track is being graded by another process."""


class ConflictError(TrecexamError):
    """Somebody else changed what the caller wants to change; nothing was written.

    Attributes:
        now: the value that counts; None where there is none.
    """

    def __init__(self, reason: str, now: Any = None, *, path: Path | str | None = None) -> None:
        super().__init__(reason, path=path)
        self.now = now


class RatingConflictError(ConflictError):
    """A rating other than the one that was seen counts; `now` is a `HumanRating`."""


class ItemConflictError(ConflictError):
    """An item was changed since it was seen; `now` is the `Item`."""


def cannot_go_on(name: str, error: Exception) -> str:
    """Return the line on a grader that cannot go on, while other graders do."""
    return f"{name} cannot go on: {error}"


def did_you_mean(name: str, candidates: Collection[str], otherwise: str = "", *, before: str = "") -> str:
    """Return a guess at the known name that was meant; `otherwise` where none is like it.

    Args:
        before: stands before the guess.
    """
    near = difflib.get_close_matches(name, candidates, n=1, cutoff=0.65)
    return f"{before}did you mean '{near[0]}'?" if near else otherwise


def quoted(path: str | os.PathLike[str]) -> str:
    """Return a path as a shell reads it, for commands that a message suggests."""
    return shlex.quote(os.fspath(path))


#: Beginning of a pydantic error's type -> what to say of the value.
_PLAIN = {
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be below {lt}",
    "finite_number": "must be a finite number",
    "string_type": "must be a text in quotes",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a section with settings",
    "extra_forbidden": "no such setting",
    "missing": "is missing",
    "bool_": "must be true or false",
    "int_": "must be a whole number",
    "float_": "must be a number",
}


def plain_reason(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, for one of the `errors()` of a pydantic.ValidationError."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context["expected"])
        value = error.get("input")
        guess = did_you_mean(value, names, before="; ") if isinstance(value, str) else ""
        return f"must be {context['expected']}{guess}"
    for beginning, words in _PLAIN.items():
        if kind.startswith(beginning):
            return words.format(**context)
    return str(error["msg"]).removeprefix("Value error, ")


def sentence(reason: str) -> str:
    """Return a reason as a sentence."""
    return reason[:1].upper() + reason[1:].rstrip(".") + "."


#: Prefix of notes on rejected input.
REJECTED = "rejected: "


def rejected_notes(rows: Sequence[object], most: int = 20) -> Iterator[str]:
    """Yield a line for each of the first rows, then the number of further rows."""
    yield from (f"{REJECTED}{row}" for row in rows[:most])
    if len(rows) > most:
        yield f"{REJECTED}{len(rows) - most:,} more"
