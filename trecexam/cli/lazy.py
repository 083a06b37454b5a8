"""Groups of commands that import a command when it is called, and name the nearest one."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cached_property

import click

from trecexam.extension import Command, commands_below, named


class LazyGroup(click.Group):
    """A group of commands; those that extensions declare are imported when they are called."""

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
