"""`trecexam bank`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "generate": (
        f"{__name__}.generate",
        "generate",
        "Write items with a language model.",
    ),
    "check": (
        f"{__name__}.check",
        "check",
        "Find duplicates, copies of the query, remains of JSON ...",
    ),
    "diff": (f"{__name__}.check", "diff", "Show what an edited bank changes: labels and ranks."),
}


@click.group(cls=LazyGroup, commands_at=COMMANDS, epilog="Example: trecexam bank check mytrack")
def bank() -> None:
    """Make, check and compare test banks.

    To remove an item from the track and keep its grades, add "retired": true to its line of the bank.
    """
