"""`trecexam exam`: its sub-commands, each imported when it is called."""

from __future__ import annotations

from importlib import import_module

import click

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "generate": (
        "trecexam.cli.exam.generating",
        "generating",
        "Have a language model write a question about each passage.",
    ),
    "filter": ("trecexam.cli.exam.filtering", "filtering", "Leave out questions that are no good; say why."),
    "score": ("trecexam.cli.exam.scoring", "scoring", "Have models take an exam, with retrievers."),
    "fit": ("trecexam.cli.exam.fit", "fit", "Fit an item response model to responses, or to a track."),
    "improve": (
        "trecexam.cli.exam.improve",
        "improve",
        "Drop the worst questions and fit again, step by step.",
    ),
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


@click.group(cls=_LazyGroup, epilog="Example: trecexam exam fit matrix.tsv -o fitted")
def exam() -> None:
    """Exams: which system is good, which question is good."""
