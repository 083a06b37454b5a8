"""`trecexam ragval`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "filter": (
        f"{__name__}.filtering",
        "filtering",
        "Choose knowledge blocks by date and novelty.",
    ),
    "questions": (
        f"{__name__}.asking",
        "asking",
        "Have a language model write questions about blocks.",
    ),
    "answers": (
        f"{__name__}.answering",
        "answering",
        "The bounds: answers without and with the block.",
    ),
    "report": (f"{__name__}.report", "report", "Systems by their judged answers."),
}


@click.group(cls=LazyGroup, commands_at=COMMANDS, epilog="Example: trecexam ragval questions mytrack")
def ragval() -> None:
    """RAGVAL: answers to questions about knowledge blocks, judged for truthfulness and relevance."""
