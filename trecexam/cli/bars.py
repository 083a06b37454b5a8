"""Progress of long work on stderr, with the remaining time: a bar on a terminal, else log lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trecexam.grades.grading import Progress

#: Seconds between log lines where stderr is no terminal.
LOG_EVERY = 10.0
#: Clock for the remaining time, in seconds.
clock = time.monotonic


def log(line: str) -> None:
    """Print a line after the time of day: `[17:42:48] grading: 3 of 9 cells`."""
    click.echo(f"[{time.strftime('%H:%M:%S')}] {line}", err=True)


def duration(seconds: float) -> str:
    """Return seconds as hours, minutes or seconds, rounded like an estimate."""
    for unit, size in (("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"


@contextmanager
def progress(doing: str = "grading", what: str = "cells") -> Iterator[Callable[[Progress], None]]:
    """Show the progress of work and the remaining time.

    Args:
        doing: name of the work, such as "grading".
        what: noun of the units, unless a report names them; units should take about the same time.
    """
    display = _Display(doing, what)
    try:
        yield display
    finally:
        display.finish()


def steps(show: Callable[[Progress], None]) -> Callable[[int, int], None]:
    """Return a function that displays (units done, units in all)."""
    # Imports numpy, which --help must not load.
    from trecexam.grades.grading import Progress

    return lambda done, of: show(Progress(done, of))


class _Display:
    """A progress display: for each stage the grader, units, units done, and remaining time."""

    def __init__(self, doing: str, what: str) -> None:
        self._doing, self._what = doing, what
        self._is_terminal = sys.stderr.isatty()
        self._next = clock() + LOG_EVERY
        self._now: Progress | None = None
        self._bar: Any = None
        self._is_loading = False
        #: Time and number of the first finished units of a stage, to leave out the loading of a model.
        self._since: tuple[float, int] | None = None

    def __call__(self, now: Progress) -> None:
        if now.loading:
            self.finish()
            if self._is_terminal:
                self._is_loading = True
                click.echo(f"\rloading {now.loading} ...", err=True, nl=False)
            return
        before, self._now = self._now, now
        goes_on = before is not None and before[1:] == now[1:] and before.graded < before.cells
        if before is None or not goes_on or now.graded < before.graded:
            self._since = None
            self.finish()
        left = self._time_left(now)
        doing, what = f"{self._doing} ({now.grader})" if now.grader else self._doing, now.what or self._what
        if not self._is_terminal:
            if clock() >= self._next:
                log(f"{doing}: {now.graded:,} of {now.cells:,} {what}{left}")
                self._next = clock() + LOG_EVERY
            return
        if self._bar is None and now.cells:
            self._bar = click.progressbar(
                length=now.cells,
                label=doing,
                file=sys.stderr,
                show_pos=True,
                show_eta=False,
                item_show_func=lambda left: left,
            )
            self._bar.__enter__()
        if self._bar is not None:
            self._bar.update(now.graded - self._bar.pos, what + left)
        if now.graded == now.cells:
            self.finish()

    def finish(self) -> None:
        """End the line of the current bar, and erase the line about loading a model."""
        if self._is_loading:
            self._is_loading = False
            click.echo("\r\x1b[K", err=True, nl=False)
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    def _time_left(self, now: Progress) -> str:
        """Return the remaining time in words; "" while the pace is unknown, or when all is done."""
        if self._since is None and now.graded:
            self._since = clock(), now.graded
        if self._since is None or now.graded in (self._since[1], now.cells):
            return ""
        pace = (clock() - self._since[0]) / (now.graded - self._since[1])
        return f", about {duration(pace * (now.cells - now.graded))} left"
