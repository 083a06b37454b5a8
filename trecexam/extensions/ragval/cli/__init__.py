"""`trecexam ragval`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "questions": (
        f"{__name__}.asking",
        "asking",
        "Write questions about blocks with a language model.",
    ),
    "answers": (
        f"{__name__}.answering",
        "answering",
        "Write the bounds: answers without and with the block.",
    ),
    "report": (f"{__name__}.report", "report", "Report systems by their judged answers."),
}


@click.group(cls=LazyGroup, commands_at=COMMANDS, epilog="Example: trecexam ragval questions mytrack")
def ragval() -> None:
    """Evaluate answers about knowledge blocks for truthfulness and relevance (RAGVAL)."""
