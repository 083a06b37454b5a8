"""The `trecexam` command: finds the sub-command and turns errors into a line and an exit status."""

from __future__ import annotations

import difflib
import gc
import os
import sys
import textwrap
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any

import click

from converters.errors import ConversionError
from trecexam.errors import TrecexamError, shortened
from trecexam.extension import Command, commands_below, named
from trecexam.version import __version__

# Loading pydantic's plugins would read the metadata of every installed package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

#: Commands of the core. Commands without a heading come first in `--help`; their help lines are here so that
#: --help imports no command.
COMMANDS = {
    "demo": Command("trecexam.cli.demo:demo", "Make a small graded track, for a first look."),
    "init": Command("trecexam.cli.init:init", "Make a track folder from your files."),
    "watch": Command("trecexam.cli.watch:watch", "Grade what is new and keep out/ up to date."),
    "status": Command("trecexam.cli.status:status", "Show what the track holds and how far grading is."),
    "leaderboard": Command("trecexam.cli.scores:leaderboard", "Show runs, best first."),
    "correlate": Command("trecexam.cli.closer:correlate", "Correlate the leaderboard with the official one."),
    "config": Command("trecexam.cli.status:config", "Print every setting of trecexam.toml."),
    "compare": Command("trecexam.cli.closer:compare", "Test which runs differ significantly.", "look closer"),
    "agreement": Command(
        "trecexam.cli.closer:agreement", "Compare automatic labels with official judgments.", "look closer"
    ),
    "verify": Command(
        "trecexam.cli.verify:verify", "Inspect grades, grids, missed passages, spurious items.", "look closer"
    ),
    "plot": Command(
        "trecexam.cli.plot:plot", "Draw a plot for a paper: PDF at the width of a column.", "look closer"
    ),
    "holes": Command(
        "trecexam.cli.closer:holes", "List passages in the first ranks that nobody judged.", "holes"
    ),
    "fill": Command("trecexam.cli.fill:fill", "Label the holes of official judgments, and merge.", "holes"),
    "override": Command(
        "trecexam.cli.override:override", "Replace the grader's rating with a person's.", "people"
    ),
    "export": Command("trecexam.cli.export:export", "Write qrels, runs or grades for other tools.", "files"),
    "convert": Command("trecexam.cli.convert:convert", "Write a file in another format.", "files"),
    "formats": Command("trecexam.cli.convert:formats", "List the file formats.", "files"),
    "graders": Command("trecexam.cli.status:graders", "List graders, and what to install for them.", "files"),
}
#: Order of the headings; extensions may add headings.
HEADINGS = ("", "look closer", "holes", "people", "banks and exams", "published evaluators", "files")


def commands() -> dict[str, Command]:
    """Return all commands, including those of extensions."""
    of_extensions = commands_below("")
    for name in COMMANDS.keys() & of_extensions.keys():
        raise TrecexamError(
            f"the extension of {of_extensions[name].at} has a command '{name}', as trecexam has"
        )
    return COMMANDS | of_extensions


def grouped() -> dict[str, list[str]]:
    """Return heading -> commands; "" has the commands without a heading."""
    by_heading: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    for name, command in commands().items():
        by_heading.setdefault(command.group, []).append(name)
    return by_heading


class LazyGroup(click.Group):
    """A group of commands; commands of extensions are imported when called."""

    @cached_property
    def declared(self) -> Mapping[str, Command]:
        """The commands that are imported when they are called."""
        return commands_below(f"{self.name} ")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *self.declared}) if self.commands else list(self.declared)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.declared:
            return super().get_command(ctx, cmd_name)
        command: click.Command = named(self.declared[cmd_name].at)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            commands = self.list_commands(ctx)
            near = difflib.get_close_matches(name.lower(), commands, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            if not near and ctx.parent is not None:
                hint = f"; give a command first: {', '.join(commands)}"
            ctx.fail(f"No such command '{name}'{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.commands:
            super().format_commands(ctx, formatter)
            return
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.line) for name, command in self.declared.items()])


class _CommandGroup(LazyGroup):
    declared = cached_property(lambda self: commands())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first commands with help lines, and the names of all other commands."""
        by_heading = grouped()
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.declared[name].line) for name in by_heading.pop("")])
        with formatter.section("More commands (`trecexam COMMAND --help` explains each)"):
            indent = " " * formatter.current_indent
            for heading, names in by_heading.items():
                lines = textwrap.wrap(", ".join(names), formatter.width - 24, break_on_hyphens=False)
                for label, line in zip((heading, *[""] * len(lines)), lines, strict=False):
                    formatter.write(f"{indent}{label:<22}{line}\n")

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader (head, less) closed the pipe: no error, though click would exit with 1. Python must
            # not flush into the pipe again.
            sys.stdout = None
            raise click.exceptions.Exit(0) from None


@click.group(
    cls=_CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Example: trecexam demo mytrack, then trecexam leaderboard mytrack",
)
@click.version_option(__version__, prog_name="trecexam")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--trust-code",
    is_flag=True,
    help="Run the track's own metric code. Read it first. Or set TRECEXAM_TRUST_CODE=1.",
)
@click.pass_context
def cli(ctx: click.Context, debug: bool, trust_code: bool) -> None:
    """Grade runs with a test bank: drop runs into a folder, read a leaderboard."""
    if trust_code:
        # Imports pydantic.
        from trecexam.folder import TRUST_CODE

        ctx.call_on_close(partial(_restore, TRUST_CODE, os.environ.get(TRUST_CODE)))
        # In the environment, so that child processes trust the same code.
        os.environ[TRUST_CODE] = "1"


def _restore(variable: str, value: str | None) -> None:
    """Restore a variable of the environment."""
    if value is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = value


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0 success, 1 something was rejected, 2 an error, 130 Ctrl-C."""
    # Commands make many records and few cycles: collect garbage rarely.
    gc.set_threshold(50_000)
    status = run(sys.argv[1:] if args is None else args)
    # Skip Python's last garbage collection: a sixth of the time of a leaderboard.
    gc.freeze()
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit status."""
    debug = "--debug" in arguments
    trust = ["--trust-code"] if "--trust-code" in arguments else []
    args = [*trust, *(a for a in arguments if a not in {"--debug", "--trust-code"})]
    try:
        status: Any = cli.main(args=args, prog_name="trecexam", standalone_mode=False)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            # A group without a command shows its help; click 8.1 does so without this error.
            click.echo(error.format_message())
            return 0
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context else ""
        click.echo(f"trecexam: {shortened(error.format_message().rstrip('.'))}{hint}", err=True)
        return error.exit_code
    except click.exceptions.Exit as error:
        return error.exit_code
    except OSError as error:
        if debug:
            raise
        what = "the output cannot be written" if error.filename is None else shortened(str(error.filename))
        if error.filename is None:
            # A full disk behind a redirection: Python must not flush again at exit.
            sys.stdout = None
        click.echo(f"trecexam: {what}: {error.strerror or error}", err=True)
        return 2
    except Exception as error:
        if debug or not isinstance(error, TrecexamError | ConversionError):
            raise
        click.echo(f"trecexam: {shortened(str(error))}", err=True)
        return 2
    return status if isinstance(status, int) else 0
