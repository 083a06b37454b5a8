"""`trecexam ragval`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "filter": (
        "trecexam.cli.ragval.filtering",
        "filtering",
        "Choose knowledge blocks by date, field, novelty.",
    ),
    "questions": (
        "trecexam.cli.ragval.asking",
        "asking",
        "Have a language model write questions about blocks.",
    ),
    "answers": (
        "trecexam.cli.ragval.answering",
        "answering",
        "The bounds: answers without and with the block.",
    ),
    "judge": ("trecexam.cli.ragval.judging", "judging", "Have a judge score the answers in the drop folder."),
    "report": ("trecexam.cli.ragval.report", "report", "Systems by their judged answers."),
}


@click.group(cls=LazyGroup, commands_at=COMMANDS, epilog="Example: trecexam ragval judge mytrack")
def ragval() -> None:
    """RAGVAL: answers to questions about knowledge blocks, judged for truthfulness and relevance."""
