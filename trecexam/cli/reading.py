"""What every command that answers a question shares: the forms of its answer, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trecexam.chosen import taken_notes
from trecexam.cli import show
from trecexam.cli.options import estimate_option, output_path, refuse_inputs
from trecexam.tables.terminal import printable

if TYPE_CHECKING:
    from trecexam.tables.result import Result

_FORMS = (
    click.option("--json", "form_json", is_flag=True, help="Print JSON, with the notes."),
    click.option("--latex", "form_latex", is_flag=True, help="Print LaTeX tables, with booktabs."),
    click.option(
        "--table",
        "form_table",
        is_flag=True,
        help="Print the terminal's tables in a pipe, too, without colour.",
    ),
    click.option(
        "--wide", is_flag=True, help="Print all columns and whole names, whatever the terminal's width."
    ),
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=output_path,
    help="Write to this file; an existing file is replaced.",
)


def reading(function: Callable[..., Result | None]) -> Callable[..., int]:
    """Gives a command that returns a `Result` --json, --latex, --table, --wide and -o, and shows the result.

    A terminal is shown the tables for people; a pipe and a file are given the first table as TSV. Notes go to
    stderr, and are in JSON and LaTeX, too. Of --json, --latex and --table at most one is given. A command
    that wrote something and has nothing to show returns None.
    """

    @wraps(function)
    def command(wide: bool, output: Path | None, **options: Any) -> int:
        form = _form(options)
        if output is not None:
            refuse_inputs(output, options.values())
        found = function(**options)
        if found is None:
            return 0
        result = _whose(found)
        answer(result, form, wide=wide, output=output)
        return 1 if result.rejected else 0

    return _with_options(command, (*_FORMS, _OUTPUT))


def writing(function: Callable[..., tuple[Result, int]]) -> Callable[..., int]:
    """As `reading`, of a command that writes files, shows a `Result` at its end, and has an exit status.

    Where the files go is for the command to say: the result has no -o.
    """

    @wraps(function)
    def command(wide: bool, **options: Any) -> int:
        form = _form(options)
        output = options.get("output")
        if isinstance(output, Path):
            refuse_inputs(output, (value for name, value in options.items() if name != "output"))
        result, status = function(**options)
        answer(_whose(result), form, wide=wide)
        return status

    return _with_options(command, _FORMS)


def _whose(result: Result) -> Result:
    """The result, with a note that names its grader where there are several and none was chosen."""
    return result.noted(*taken_notes())


def writing_or_estimating(function: Callable[..., tuple[Result | None, int]]) -> Callable[..., int]:
    """As `writing`, of a command that has --estimate, too, and is told `as_json`: whether it is to be JSON.

    Where it showed an estimate, or has nothing to show, its result is None.
    """

    @wraps(function)
    def command(wide: bool, **options: Any) -> int:
        form = _form(options)
        result, status = function(as_json=form == "json", **options)
        if result is not None:
            answer(_whose(result), form, wide=wide)
        return status

    return _with_options(command, (estimate_option, *_FORMS))


def _form(options: dict[str, Any]) -> str | None:
    """Takes --json, --latex and --table out of a command's options, and returns the one that is given.

    Raises:
        click.UsageError: several are given.
    """
    formats = [name for name in ("json", "latex", "table") if options.pop(f"form_{name}")]
    if len(formats) > 1:
        raise click.UsageError("give one of " + ", ".join(f"--{name}" for name in formats))
    return formats[0] if formats else None


def _with_options(
    command: Callable[..., int], options: Sequence[Callable[[Callable[..., int]], Callable[..., int]]]
) -> Callable[..., int]:
    for option in reversed(options):
        command = option(command)
    return command


def say(result: Result, notes: Sequence[str] | None = None) -> None:
    """Its notes, to stderr; or these of them."""
    for note in result.notes if notes is None else notes:
        click.echo(printable(note), err=True)


def answer(
    result: Result, form: str | None = None, *, wide: bool = False, output: Path | None = None
) -> None:
    """Shows a result as these options say, and its notes."""
    people = form == "table" or (form is None and output is None and show.on_terminal())
    say(result, result.notes if form == "latex" or (people and not wide) else result.notes_on_all)
    if people:
        tables = result.all_for_people() if wide else result.for_people()
        if result.notes and output is None:
            # The notes say it without headings that stand above nothing.
            tables = tuple(table for table in tables if table.rows)
        lines = show.table_lines(tables, wide=wide, styled=output is None)
        text = "".join(f"{line}\n" for line in lines)
    else:
        text = {"json": result.to_json, "latex": result.to_latex}.get(form or "", result.to_tsv)()
    show.write(text, output)
