"""`trecexam ragval`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    name: (f"{__name__}.commands", function, help_line)
    for name, function, help_line in (
        ("questions", "asking", "Write questions about blocks with a language model."),
        ("answers", "answering", "Write the bounds: answers without and with the block."),
        ("report", "report", "Report systems by their judged answers."),
    )
}


@click.group(cls=LazyGroup, commands_at=COMMANDS, epilog="Example: trecexam ragval questions mytrack")
def ragval() -> None:
    """Evaluate answers about knowledge blocks for truthfulness and relevance (RAGVAL)."""
