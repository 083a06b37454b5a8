"""How commands talk: tables to stdout, everything else to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from trecexam.files import atomic
from trecexam.tables.printers import table_lines
from trecexam.tables.table import Table, to_tsv

if TYPE_CHECKING:
    from pathlib import Path

    from trecexam.track import Track


def table(table: Table) -> None:
    """Print a table: aligned on a terminal, TSV into a pipe."""
    if on_terminal():
        lines(table_lines(table, width(), "", wide=True))
    else:
        write(to_tsv(table))


def tables_text(tables: Iterable[Table], below: Sequence[str] = (), *, wide: bool = False) -> str:
    """Return tables as people read them: to the terminal's width, unless they are wide.

    Args:
        below: what a line below the first table says of it.
    """
    texts = (
        "".join(
            f"{line}\n"
            for line in table_lines(
                table,
                width(),
                "--wide shows all",
                wide=wide,
                below=() if number else below,
                heading=partial(_styled, bold=True),
                last=partial(_styled, dim=True),
            )
        )
        for number, table in enumerate(tables)
    )
    return "\n".join(texts)


def write(text: str, output: Path | None = None) -> None:
    """Writes a text to stdout, or to a file that it replaces."""
    if output is None:
        click.echo(_encodable(text), nl=False)
        return
    atomic.replace(output, text.encode())


def _styled(text: str, **style: bool) -> str:
    """The text bold or dim where that is wanted, and shown."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not on_terminal()
    return text if plain else click.style(text, **style)


def on_terminal() -> bool:
    """Whether stdout is read by a person."""
    return sys.stdout.isatty()


def width() -> int:
    """Columns of the terminal, or what COLUMNS says; 80 where neither is known, and never below 40.

    In a pipe it is the terminal of stderr, as a pager mostly writes there.
    """
    columns = shutil.get_terminal_size((0, 0)).columns
    if not columns:
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(sys.__stderr__.fileno() if sys.__stderr__ else 2).columns
    return max(40, columns or 80)


def lines(texts: Iterable[str]) -> None:
    """Prints lines as they come."""
    for line in texts:
        click.echo(_encodable(line))


def _encodable(text: str) -> str:
    """The text with escapes for the characters that stdout's encoding does not have; ours become ~."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        "±…".encode(encoding)
    except UnicodeEncodeError:
        text = text.translate({ord(mark): "~" for mark in "±…"})
    return text.encode(encoding, "backslashreplace").decode(encoding)


def human(track: Track) -> None:
    """Says how much of what is shown people rated, if they did."""
    summary = track.override.summary()
    if summary["who"]:
        from trecexam.line.diagnostics import human_line

        click.echo(human_line(summary), err=True)
