"""Groups of commands that are imported when they are called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose `--help` imports none of its commands.

    Args:
        commands_at: command -> (module, function, help line).
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, tuple[str, str, str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._commands_at = commands_at

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
