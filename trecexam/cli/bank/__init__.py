"""`trecexam bank`: its sub-commands, each imported when it is called."""

from __future__ import annotations

from importlib import import_module

import click

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "generate": (
        "trecexam.cli.bank.generate",
        "generate",
        "Have a language model write items for queries without.",
    ),
    "check": ("trecexam.cli.bank.check", "check", "Duplicates, copies of the query, remains of JSON ..."),
    "diff": ("trecexam.cli.bank.diff", "diff", "What an edited bank changes: labels and ranks."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, function, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


@click.group(cls=_LazyGroup, epilog="Example: trecexam bank check mytrack")
def bank() -> None:
    """Make, check and compare test banks.

    A line of the bank with "retired": true takes its item out of the track and keeps its grades.
    """
