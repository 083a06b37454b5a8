"""`trecexam bank check`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import grader_option
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    from trecexam.extensions.banks.checks import Checked
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam bank check bank.questions.jsonl --max-words 25")
@click.argument(
    "paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True, metavar="FILE...|TRACK"
)
@click.option(
    "--max-words",
    type=click.IntRange(min=1),
    metavar="N",
    help="Words that an item may have [default: 30 for questions, 20 for nuggets].",
)
@grader_option
@reading
def check(paths: tuple[Path, ...], max_words: int | None) -> Result:
    """What to look at again in the bank files FILE..., or in TRACK's bank.

    Lines that cannot be read; items that are empty, too long, a copy of the query, there twice (up to case
    and punctuation), or have remains of a model's answer around them. Of a TRACK also queries without items
    or text. Exit status 0: nothing was found; 1: something was.
    """
    from trecexam.extensions.banks.check import check_files

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise TrecexamError("give one track, or files", path=folders[0])
    if folders:
        with trecexam.open_track(folders[0]) as opened:
            checked: Checked = opened.bank.check(max_words=max_words)
    else:
        checked = check_files(paths, max_words)
    # What is to be looked at is what ends the command with 1.
    return replace(checked, rejected=checked.problems)
