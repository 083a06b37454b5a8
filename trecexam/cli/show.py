"""How commands talk: tables to stdout, everything else to stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from trecexam.pipeline import Progress
from trecexam.reports.tables import Table, to_aligned, to_json, to_tsv

if TYPE_CHECKING:
    from trecexam.api import Track

#: Seconds between log lines of long work that has no terminal to draw on.
LOG_EVERY = 10.0


def table(table: Table, *, as_json: bool = False, json_value: Any = None) -> None:
    """Prints a table: aligned on a terminal, TSV into a pipe, JSON when asked."""
    if as_json:
        text = to_json(table.records() if json_value is None else json_value)
    else:
        text = to_aligned(table) if sys.stdout.isatty() else to_tsv(table)
    click.echo(text, nl=False)


def human(track: Track) -> None:
    """Says how much of what is shown people rated, if they did."""
    said = track.said()
    if said["who"]:
        click.echo(
            f"{said['cells']:,} cells and {said['passages']:,} passages have a person's rating in place of "
            f"the grader's ({', '.join(said['who'])})",
            err=True,
        )


def log(line: str) -> None:
    """A line of talk, with the time of day."""
    click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)


@contextmanager
def grading() -> Iterator[Callable[[Progress], None]]:
    """Shows how grading goes: a bar on a terminal, now and then a line elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    bars: list[Any] = []

    def draw(progress: Progress) -> None:
        if not bars or bars[-1].length != progress.cells:
            finish()
            bars.append(
                click.progressbar(
                    length=progress.cells,
                    label="grading",
                    file=sys.stderr,
                    show_pos=True,
                    item_show_func=lambda _: "cells",
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


class _Lines:
    def __init__(self) -> None:
        self._next = time.monotonic() + LOG_EVERY

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() >= self._next:
            log(f"graded {progress.graded:,} of {progress.cells:,} cells")
            self._next = time.monotonic() + LOG_EVERY
