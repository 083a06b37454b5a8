"""Errors that a user can cause and mend: shown as one line, without a traceback."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from converters.records import HumanRating, Item


#: Letters of a word, or of a text in quotes, that a message has at most, and that it keeps of each end.
_MOST, _END = 300, 120
_LONG = re.compile(rf"(?<!\w)'[^']{{{_MOST},}}'(?!\w)|\S{{{_MOST},}}")


def shortened(message: str) -> str:
    """A message whose long words and quoted texts are cut in the middle: somebody may have typed thousands of
    letters.
    """
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
    """What a grader needs, and only a person can give (a test bank, a language model), is not there yet.

    Other graders of the track go on.
    """


class StoreError(TrecexamError):
    """The grade store cannot be opened, read or written."""


class GraderError(TrecexamError):
    """A grader that is not known, not installed, or lacks the requested feature."""


class LockedError(TrecexamError):
    """Another process is already grading this track."""


class ConflictError(TrecexamError):
    """Somebody else changed what the caller wants to change; nothing was written."""


class RatingConflictError(ConflictError):
    """Another rating counts than the one that was seen.

    Attributes:
        now: the rating that counts; None where there is none.
    """

    def __init__(self, reason: str, now: HumanRating | None, *, path: Path | str | None = None) -> None:
        super().__init__(reason, path=path)
        self.now = now


class ItemConflictError(ConflictError):
    """An item is another one than the one that was seen.

    Attributes:
        now: the item; None where it is gone.
    """

    def __init__(self, reason: str, now: Item | None, *, path: Path | str | None = None) -> None:
        super().__init__(reason, path=path)
        self.now = now


def cannot_go_on(name: str, error: Exception) -> str:
    """The line on one of several graders that cannot go on; the others do."""
    return f"{name} cannot go on: {error}"


def did_you_mean(name: str, candidates: Collection[str], otherwise: str = "", *, before: str = "") -> str:
    """A guess at what was meant by a name that is not known; `otherwise` where none of the known is like it.

    Args:
        before: stands before the guess.
    """
    near = difflib.get_close_matches(name, candidates, n=1)
    return f"{before}did you mean '{near[0]}'?" if near else otherwise


def quoted(path: str | os.PathLike[str]) -> str:
    """Return a path as a shell reads it, for commands that a message suggests."""
    return shlex.quote(os.fspath(path))


#: Type of a pydantic error -> what to say of the value.
_PLAIN = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be {le} or less",
    "finite_number": "must be a finite number",
    "string_type": "must be a text in quotes",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a section with settings",
    "extra_forbidden": "no such setting",
    "missing": "is missing",
}
#: The same by what a type begins with.
_PLAIN_KINDS = {
    "bool_": "must be true or false",
    "int_": "must be a whole number",
    "float_": "must be a number",
}


def plain_reason(error: Mapping[str, Any]) -> str:
    """What is wrong with a value, in plain words, for one of the `errors()` of a pydantic.ValidationError."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context["expected"])
        value = error.get("input")
        return f"must be {context['expected']}" + (
            did_you_mean(value, names, before="; ") if isinstance(value, str) else ""
        )
    plain = _PLAIN.get(kind)
    if plain is not None:
        return plain.format(**context)
    for beginning, words in _PLAIN_KINDS.items():
        if kind.startswith(beginning):
            return words
    return str(error["msg"]).removeprefix("Value error, ")
