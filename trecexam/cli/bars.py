"""How far long work is: a bar on a terminal, now and then a line elsewhere; both go to stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trecexam.line.grading import Progress

#: Seconds between log lines of long work that has no terminal to draw on.
LOG_EVERY = 10.0


def log(line: str) -> None:
    """Prints a line with the time of day: `[17:42:48] graded 3 of 9 cells`."""
    click.echo(f"[{time.strftime('%H:%M:%S')}] {line}", err=True)


@contextmanager
def grading(
    doing: str = "grading", done: str = "graded", what: str = "cells"
) -> Iterator[Callable[[Progress], None]]:
    """Shows how long work goes: a bar on a terminal, now and then a line elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines(done, what)
        return
    bars: list[Any] = []

    def draw(progress: Progress) -> None:
        if not bars or bars[-1].length != progress.cells:
            finish()
            bars.append(
                click.progressbar(
                    length=progress.cells,
                    label=f"{doing} ({progress.grader})" if progress.grader else doing,
                    file=sys.stderr,
                    show_pos=True,
                    item_show_func=lambda _: progress.what or what,
                )
            )
            bars[-1].__enter__()
        bars[-1].update(progress.graded - bars[-1].pos)
        if progress.graded == progress.cells:
            finish()

    def finish() -> None:
        if bars:
            bars.pop().__exit__(None, None, None)

    try:
        yield draw
    finally:
        finish()


def steps(progress: Callable[[Progress], None]) -> Callable[[int, int], None]:
    """The same for work that is told as (how many are done, of how many)."""
    # Imports numpy, which --help must not load.
    from trecexam.line.grading import Progress

    return lambda done, of: progress(Progress(done, of))


class _Lines:
    def __init__(self, done: str, what: str) -> None:
        self._done, self._what = done, what
        self._next = time.monotonic() + LOG_EVERY

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() >= self._next:
            by = f" ({progress.grader})" if progress.grader else ""
            log(f"{self._done} {progress.graded:,} of {progress.cells:,} {progress.what or self._what}{by}")
            self._next = time.monotonic() + LOG_EVERY
