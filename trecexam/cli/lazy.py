"""Groups of commands that import a command when it is called, and name the nearest one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import click

from trecexam.extension import extensions, named

#: Command -> (module, function, help line).
CommandsAt = Mapping[str, tuple[str, str, str]]


class LazyGroup(click.Group):
    """A group of commands, some of extensions; those in `commands_at` are imported when they are called."""

    def __init__(self, *args: Any, commands_at: CommandsAt | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._given = commands_at or {}

    @cached_property
    def commands_at(self) -> CommandsAt:
        """The commands that are imported when they are called."""
        return {**self._given} | extension_commands(f"{self.name} ")

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *self.commands_at}) if self.commands else list(self.commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_at:
            return super().get_command(ctx, cmd_name)
        module, function, _ = self.commands_at[cmd_name]
        command: click.Command = named(f"{module}:{function}")
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
            formatter.write_dl([(name, line) for name, (_, _, line) in self.commands_at.items()])


def extension_commands(prefix: str) -> dict[str, tuple[str, str, str]]:
    """Return the commands of extensions whose names have a prefix, by the rest of their names."""
    commands = {}
    for extension in extensions():
        for full_name, command in extension.commands.items():
            name = full_name.removeprefix(prefix)
            if full_name.startswith(prefix) and " " not in name:
                module, _, function = command.at.partition(":")
                commands[name] = (module, function, command.line)
    return commands
