"""The commands of the program."""

from __future__ import annotations

from collections.abc import Iterator

import click

from trecexam.cli.main import cli


def leaves(command: click.Command = cli, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the words of each command that is not a group, with the command."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from leaves(inner, *words, name)
