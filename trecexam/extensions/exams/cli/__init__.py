"""`trecexam exam`: its sub-commands, each imported when it is called."""

from __future__ import annotations

import click

from trecexam.cli.lazy import LazyGroup

#: sub-command -> (module, function, help line). The line stands here so that --help imports none of them.
COMMANDS = {
    "generate": (
        f"{__name__}.generating",
        "generating",
        "Write a question about each passage with a language model.",
    ),
    "filter": (
        f"{__name__}.generating",
        "filtering",
        "Remove questions that refer to their text, and say why.",
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
    """Make multiple-choice exams, have systems take them, and fit item response models."""
