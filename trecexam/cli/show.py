"""How commands talk: tables to stdout, everything else to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from trecexam.files import atomic
from trecexam.tables.fitted import fitted
from trecexam.tables.table import Layout, Table, to_aligned, to_json, to_tsv
from trecexam.tables.terminal import printable, wrapped
from trecexam.tables.text import shorten_list

if TYPE_CHECKING:
    from pathlib import Path

    from trecexam.api import Track


def table(
    table: Table,
    *,
    as_json: bool = False,
    json_value: Any = None,
    layout: Layout | None = None,
    wide: bool = False,
    aligned: bool = False,
    more: str = "--wide shows all",
) -> None:
    """Prints a table: aligned on a terminal, TSV into a pipe, JSON when asked.

    Args:
        layout: what people are shown first of a table that keeps to the terminal's width.
        wide: with a layout: whatever the terminal's width, nothing is left out.
        aligned: with a layout: a pipe is given what a terminal is, without colour.
        more: how to see what was left out.
    """
    people = for_people(as_json=as_json, aligned=aligned)
    if people and layout is not None:
        lines(_fitted(table, layout, wide=wide, more=more))
        return
    if as_json:
        text = to_json(table.records() if json_value is None else json_value)
    else:
        text = to_aligned(table) if people else to_tsv(table)
    click.echo(text, nl=False)


def table_lines(tables: Iterable[Table], *, wide: bool = False, styled: bool = True) -> Iterator[str]:
    """Tables as people read them: to the terminal's width, unless they are wide."""
    for number, table in enumerate(tables):
        yield from [""] if number else []
        caption = printable(table.caption)
        yield from [caption] if wide and caption else wrapped(caption, width())
        yield from _fitted(table, table.layout, wide=wide, more="--wide shows all", styled=styled)


def write(text: str, output: Path | None) -> None:
    """Writes a text to stdout, or to a file that it replaces."""
    if output is None:
        click.echo(_encodable(text), nl=False)
        return
    atomic.replace(output, text.encode())


def _fitted(table: Table, layout: Layout, *, wide: bool, more: str, styled: bool = True) -> Iterator[str]:
    style = _styled if styled else _plain
    fit = fitted(table, None if wide else width(), layout)
    for number, (heading, *rows) in enumerate(fit.tables):
        yield from [*([""] if number else []), style(heading, bold=True), *rows]
    left_out = [f"left out: {shorten_list(fit.left_out, 4, quote='')}"] if fit.left_out else []
    left_out += ["long names are cut"] if fit.cut else []
    notes = [*fit.legend, *left_out, *([more] if left_out else [])]
    yield from (style(line, dim=True) for line in wrapped("; ".join(notes), width()))


def for_people(*, as_json: bool, aligned: bool) -> bool:
    """Whether a table is read by people, who want less of it than programs do.

    Raises:
        click.UsageError: two forms are requested.
    """
    if as_json and aligned:
        raise click.UsageError("--json or --table, not both")
    return aligned or (on_terminal() and not as_json)


def _styled(text: str, **style: bool) -> str:
    """The text bold or dim where that is wanted, and shown."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not on_terminal()
    return text if plain else click.style(text, **style)


def _plain(text: str, **style: bool) -> str:
    return text


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
