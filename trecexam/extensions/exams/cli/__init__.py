"""`trecexam exam`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "generate": (
        f"{__name__}.generating",
        "generating",
        "Have a language model write a question about each passage.",
    ),
    "filter": (
        f"{__name__}.filtering",
        "filtering",
        "Leave out questions that are no good; say why.",
    ),
    "score": (
        f"{__name__}.scoring",
        "scoring",
        "Have models take an exam, with retrievers.",
    ),
    "fit": (
        f"{__name__}.fitting",
        "fit",
        "Fit an item response model to responses, or to a track.",
    ),
    "improve": (
        f"{__name__}.fitting",
        "improve",
        "Drop the worst questions and fit again, step by step.",
    ),
}


@click.group(cls=LazyGroup, commands_at=COMMANDS, epilog="Example: trecexam exam fit matrix.tsv -o fitted")
def exam() -> None:
    """Exams: which system is good, which question is good."""
