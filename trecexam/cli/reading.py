"""Shared parts of reading commands: output options, and printing of results."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trecexam.cli.options import estimate_option, output_option, refuse_inputs
from trecexam.errors import REJECTED, quoted
from trecexam.files import atomic
from trecexam.results.result import Result
from trecexam.results.table import Table
from trecexam.results.terminal import printable
from trecexam.results.text import first_notes
from trecexam.results.view import table_lines

if TYPE_CHECKING:
    from trecexam.track import Track

_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, with the notes.")
_wide_option = click.option(
    "--wide", is_flag=True, help="Print all columns and whole names, whatever the terminal's width."
)
_output_option = output_option("Write to this file.")


def reading(function: Callable[..., Result | None]) -> Callable[..., int]:
    """Give a command that returns a `Result` the options --json, --wide and -o, and print the result.

    A terminal gets aligned tables; a pipe and a file get the first table as TSV. The first notes go to
    stderr, and JSON has all. A command that wrote files and has no result to show returns None.
    """

    @wraps(function)
    def command(as_json: bool, wide: bool, output: Path | None, **options: Any) -> int:
        if output is not None:
            refuse_inputs(output, options.values())
        result = function(**options)
        if result is None:
            return 0
        answer(result, as_json=as_json, wide=wide, output=output)
        track = options.get("track")
        if track is not None and not isinstance(track, Path):
            _say_rejected(track, result)
        return 1 if result.rejected else 0

    return _json_option(_wide_option(_output_option(command)))


def writing(
    function: Callable[..., tuple[Result | None, int]], *, also: tuple[str, ...] = ()
) -> Callable[..., int]:
    """Decorate a command that writes files; it returns a `Result` or None, and an exit status.

    The command has its own options for files; the result has no -o.

    Args:
        also: names of parameters to pass on: "as_json", for a command with this parameter.
    """

    @wraps(function)
    def command(as_json: bool, wide: bool, **options: Any) -> int:
        output = options.get("output")
        if isinstance(output, Path):
            refuse_inputs(output, (value for name, value in options.items() if name != "output"))
        result, status = function(**options, **dict.fromkeys(also, as_json))
        if result is not None:
            answer(result, as_json=as_json, wide=wide)
        return status

    return _json_option(_wide_option(command))


def writing_or_estimating(function: Callable[..., tuple[Result | None, int]]) -> Callable[..., int]:
    """Decorate a command that has --estimate, too, and the parameter `as_json`; see `writing`."""
    return estimate_option(writing(function, also=("as_json",)))


def _say_rejected(track: Track, result: Result) -> None:
    """Print the number of rejected inputs, unless the result names them."""
    # Imports numpy.
    from trecexam.track import selection

    loaded = selection(track).loaders.last_loaded()
    lost = Counter(row.lost for row in {row for each in loaded for row in each.not_taken})
    if lost and "rejected" not in result.facts and not any(n.startswith(REJECTED) for n in result.notes):
        # Imports more modules than a leaderboard needs.
        from trecexam.inputs.inputs import lost_in_words

        command = f"trecexam watch {quoted(track.folder.root)} --once"
        click.echo(f"rejected: {lost_in_words(lost)}; `{command}` lists them in out/rejected.tsv", err=True)


def say(notes: Iterable[str]) -> None:
    """Print notes to stderr."""
    for note in notes:
        click.echo(printable(note), err=True)


def answer(
    result: Result,
    *,
    as_json: bool = False,
    wide: bool = False,
    output: Path | None = None,
    all_in: str = "--json",
) -> None:
    """Print a result as JSON, as aligned tables on a terminal, else as TSV; then its first notes to stderr.

    JSON has all notes.

    Args:
        all_in: the option that prints all notes, for the line on further notes.
    """
    if not as_json and output is None and on_terminal():
        # With notes, skip a heading without rows.
        tables = (each for each in result._for_people(wide=wide) if each.rows or not result.notes)
        text = tables_text(tables, wide=wide)
    else:
        text = result.to_json() if as_json else result.to_tsv()
    write(text, output)
    say(first_notes(result.notes, all_in))


def tables_text(tables: Iterable[Table], *, wide: bool = False) -> str:
    """Return tables as aligned text of the terminal's width, or `wide`."""
    width = max(40, shutil.get_terminal_size((80, 24)).columns)
    texts = (
        "".join(
            f"{line}\n"
            for line in table_lines(
                table.view(wide=wide),
                sys.maxsize if wide else width,
                "--wide shows all",
                heading=partial(_styled, bold=True),
                last=partial(_styled, dim=True),
            )
        )
        for table in tables
    )
    return "\n".join(texts)


def write(text: str, output: Path | None = None) -> None:
    """Write a text to stdout, or replace a file."""
    if output is None:
        # Escape characters that stdout's encoding lacks.
        encoding = sys.stdout.encoding or "utf-8"
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)
        return
    atomic.replace(output, text.encode())


def _styled(text: str, **style: bool) -> str:
    """Return the text bold or dim if stdout supports styles."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not on_terminal()
    return text if plain else click.style(text, **style)


def on_terminal() -> bool:
    """Return True if stdout is a terminal."""
    return sys.stdout.isatty()
