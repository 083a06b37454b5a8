"""Writes test banks with a language model: an extension that declares a `bank_writer`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from trecexam.errors import TrackError
from trecexam.extension import extensions, named
from trecexam.folder import TrackFolder
from trecexam.graders.base import Estimate
from trecexam.graders.writing.asking import SpentByGraders


class WrittenBank(NamedTuple):
    """What came of writing a bank.

    Attributes:
        path: of its file, which is written when every query is through, and not before.
        items, queries: how many it has, and of how many queries.
        failures: a line for each query that has got no items, or not all.
        why: what ended it early; "" where it came to its end.
    """

    path: Path
    items: int
    queries: int
    failures: tuple[str, ...]
    why: str


class BankWriter(Protocol):
    """Has a language model write banks. `folder` is a track's as the grader that needs one sees it."""

    def write(
        self,
        folder: TrackFolder,
        progress: Callable[[int, int], None],
        stop: Callable[[], bool] | None,
        spent_by_graders: SpentByGraders,
    ) -> WrittenBank:
        """Writes the bank as `write_bank` says; what was answered before is not asked again.

        Args:
            progress: is told how many of how many prompts are answered.
            stop: asked again and again; True ends it early.
            spent_by_graders: gives what graders used of the budget of a section.

        Raises:
            TrecexamError, ConversionError: it cannot be written; what was answered is kept.
        """
        ...

    def forget_unread(self, folder: TrackFolder) -> int:
        """Drops stored answers that cannot be read, so that `write` asks again; returns how many.

        Raises:
            TrecexamError, ConversionError: what to ask cannot be read.
        """
        ...

    def estimate(self, folder: TrackFolder) -> Estimate:
        """What `write` would take, at most; asks nobody."""
        ...


@cache
def bank_writer() -> BankWriter:
    """The one that is installed.

    Raises:
        TrackError: none is.
    """
    at = next(
        (extension.bank_writer for extension in extensions() if extension.bank_writer is not None), None
    )
    if at is None:
        raise TrackError("`write_bank` is set, but no installed extension writes test banks")
    writer: BankWriter = named(at)
    return writer
