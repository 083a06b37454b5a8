"""How commands talk: tables to stdout, everything else to stderr."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from trecexam.tables.table import Table, to_aligned, to_json, to_tsv
from trecexam.tables.terminal import printable

if TYPE_CHECKING:
    from trecexam.api import Track
    from trecexam.line.grading import Progress

#: Seconds between log lines of long work that has no terminal to draw on.
LOG_EVERY = 10.0


def table(table: Table, *, as_json: bool = False, json_value: Any = None) -> None:
    """Prints a table: aligned on a terminal, TSV into a pipe, JSON when asked."""
    if as_json:
        text = to_json(table.records() if json_value is None else json_value)
    else:
        text = to_aligned(table) if sys.stdout.isatty() else to_tsv(table)
    click.echo(text, nl=False)


def tsv(table: Table) -> None:
    """Prints a table as TSV, whatever stdout is."""
    click.echo(_encodable(to_tsv(table)), nl=False)


def json_value(value: Any) -> None:
    """Prints a value as JSON."""
    click.echo(_encodable(to_json(value)), nl=False)


def on_terminal() -> bool:
    """Whether stdout is read by a person."""
    return sys.stdout.isatty()


def width() -> int:
    """Columns of the terminal, or what COLUMNS says; 80 where neither is known, and never below 40."""
    return max(40, shutil.get_terminal_size().columns)


def lines(texts: Iterable[str]) -> None:
    """Prints lines as they come."""
    for line in texts:
        click.echo(_encodable(line))


def _encodable(text: str) -> str:
    """The text with escapes for the characters that stdout's encoding does not have."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def human(track: Track) -> None:
    """Says how much of what is shown people rated, if they did."""
    summary = track.override_summary()
    if summary["who"]:
        click.echo(
            f"a person's rating stands in place of the grader's in {summary['cells']:,} cells and for "
            f"{summary['passages']:,} passages as a whole ({', '.join(map(printable, summary['who']))})",
            err=True,
        )


def missing(track: Track) -> None:
    """Says how many cells have no grade, and how many passages cannot have one."""
    counts = track.counts()
    if counts.missing:
        click.echo(
            f"{counts.missing:,} of {counts.cells:,} cells have no grade; "
            f"`trecexam watch {track.folder.root}` grades what the grader can",
            err=True,
        )
    if counts.no_text:
        click.echo(
            f"{counts.no_text:,} of {counts.passages:,} pooled passages have no text and count as not "
            "relevant",
            err=True,
        )


def log(line: str) -> None:
    """A line of talk, with the time of day."""
    click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)


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
                    label=doing,
                    file=sys.stderr,
                    show_pos=True,
                    item_show_func=lambda _: what,
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
    # Behind it is numpy, which --help must not wait for.
    from trecexam.line.grading import Progress

    return lambda done, of: progress(Progress(done, of))


class _Lines:
    def __init__(self, done: str, what: str) -> None:
        self._done, self._what = done, what
        self._next = time.monotonic() + LOG_EVERY

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() >= self._next:
            log(f"{self._done} {progress.graded:,} of {progress.cells:,} {self._what}")
            self._next = time.monotonic() + LOG_EVERY
