"""Groups of commands: they name the nearest command, and may import theirs when these are called."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import Any

import click

from trecexam.extension import extensions, named

CommandsAt = Mapping[str, tuple[str, str, str]]


class SuggestingGroup(click.Group):
    """A group that names the nearest command where there is none of a name; not all versions of click do."""

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


class OpenGroup(SuggestingGroup):
    """A group that extensions add commands to."""

    @cached_property
    def _added(self) -> dict[str, str]:
        """Command -> "module:function"."""
        prefix = f"{self.name} "
        return {
            name.removeprefix(prefix): command.at
            for extension in extensions()
            for name, command in extension.commands.items()
            if name.startswith(prefix)
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self._added})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own_command = super().get_command(ctx, cmd_name)
        if own_command is not None or cmd_name not in self._added:
            return own_command
        command: click.Command = named(self._added[cmd_name])
        return command


class LazyGroup(SuggestingGroup):
    """A group whose `--help` imports none of its commands.

    Args:
        commands_at: command -> (module, function, help line); or what gives that when it is first asked for.
    """

    def __init__(
        self, *args: Any, commands_at: CommandsAt | Callable[[], CommandsAt], **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._given = commands_at

    @cached_property
    def _commands_at(self) -> CommandsAt:
        return self._given() if callable(self._given) else self._given

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._commands_at:
            return None
        module, function, _ = self._commands_at[cmd_name]
        command: click.Command = getattr(import_module(module), function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self._commands_at.items()])
