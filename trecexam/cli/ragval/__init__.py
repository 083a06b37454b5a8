"""`trecexam ragval`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "report": ("trecexam.cli.ragval.report", "report", "Systems by their judged answers."),
}


@click.group(cls=LazyGroup, commands_at=COMMANDS, epilog="Example: trecexam ragval report judged.jsonl")
def ragval() -> None:
    """RAGVAL: answers to questions about knowledge blocks, judged for truthfulness and relevance."""
