"""How commands talk: tables to stdout, everything else to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.files import atomic
from trecexam.results.printers import table_lines
from trecexam.results.table import Table

if TYPE_CHECKING:
    from trecexam.track import Track


def tables_text(tables: Iterable[Table], *, wide: bool = False) -> str:
    """Return tables as people read them: to the terminal's width, unless they are wide."""
    texts = (
        "".join(
            f"{line}\n"
            for line in table_lines(
                table,
                width(),
                "--wide shows all",
                wide=wide,
                heading=partial(_styled, bold=True),
                last=partial(_styled, dim=True),
            )
        )
        for table in tables
    )
    return "\n".join(texts)


def write(text: str, output: Path | None = None) -> None:
    """Write a text to stdout, or to a file that it replaces."""
    if output is None:
        # Characters that stdout's encoding does not have are escaped.
        encoding = sys.stdout.encoding or "utf-8"
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)
        return
    atomic.replace(output, text.encode())


def _styled(text: str, **style: bool) -> str:
    """Return the text bold or dim where stdout shows that."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not on_terminal()
    return text if plain else click.style(text, **style)


def on_terminal() -> bool:
    """Return True where a person reads stdout."""
    return sys.stdout.isatty()


def width() -> int:
    """Return the columns of the terminal, or what COLUMNS says; never below 40."""
    return max(40, shutil.get_terminal_size((80, 24)).columns)


def human(track: Track) -> None:
    """Print how much of what is shown people rated, if they did."""
    from trecexam.grades.diagnostics import human_notes

    for line in human_notes(track.override.summary()):
        click.echo(line, err=True)
