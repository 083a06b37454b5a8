"""How commands talk: tables to stdout, everything else to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from trecexam.files import atomic
from trecexam.tables.fitted import fitted
from trecexam.tables.table import Table, to_aligned, to_json, to_tsv
from trecexam.tables.terminal import printable, wrapped
from trecexam.tables.text import shorten_list

if TYPE_CHECKING:
    from pathlib import Path

    from trecexam.track import Track


def table(table: Table, *, as_json: bool = False, json_value: Any = None) -> None:
    """Print a table: aligned on a terminal, TSV into a pipe, JSON where requested."""
    if as_json:
        text = to_json(table.records() if json_value is None else json_value)
    else:
        text = to_aligned(table) if on_terminal() else to_tsv(table)
    click.echo(text, nl=False)


def table_lines(tables: Iterable[Table], below: Sequence[str] = (), *, wide: bool = False) -> Iterator[str]:
    """Tables as people read them: to the terminal's width, unless they are wide.

    Args:
        below: what a line below the first table says of it.
    """
    for number, table in enumerate(tables):
        yield from [""] if number else []
        caption = printable(table.caption)
        yield from [caption] if wide and caption else wrapped(caption, width())
        yield from _fitted(table, () if number else below, wide=wide)


def write(text: str, output: Path | None) -> None:
    """Writes a text to stdout, or to a file that it replaces."""
    if output is None:
        click.echo(_encodable(text), nl=False)
        return
    atomic.replace(output, text.encode())


def _fitted(table: Table, below: Sequence[str], *, wide: bool) -> Iterator[str]:
    fit = fitted(table, None if wide else width(), table.layout)
    for number, (heading, rows) in enumerate(fit.tables):
        yield from [""] if number else []
        yield from (_styled(line, bold=True) for line in heading)
        yield from rows
    left_out = [f"left out: {shorten_list(fit.left_out, 4, quote='')}"] if fit.left_out else []
    left_out += ["long names are cut"] if fit.cut else []
    notes = [*fit.legend, *below, *left_out, *(["--wide shows all"] if left_out else [])]
    yield from (_styled(line, dim=True) for line in wrapped("; ".join(notes), width()))


def _styled(text: str, **style: bool) -> str:
    """The text bold or dim where that is wanted, and shown."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not on_terminal()
    return text if plain else click.style(text, **style)


def json_value(value: Any) -> None:
    """Prints a value as JSON."""
    click.echo(_encodable(to_json(value)), nl=False)


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
