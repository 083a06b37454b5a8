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


@click.command(epilog="Example: trecexam bank check bank.questions.jsonl")
@click.argument(
    "paths", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True, metavar="FILE...|TRACK"
)
@grader_option
@reading
def check(paths: tuple[Path, ...]) -> Result:
    """What to look at again in the bank files FILE..., or in TRACK's bank.

    Lines that cannot be read; items that are empty, too long (30 words, 20 of a nugget), a copy of the query,
    there twice (up to case and punctuation), or have remains of a model's answer around them. Of a TRACK also
    queries without items or text. Exit status 0: nothing was found; 1: something was.
    """
    from trecexam.extensions.banks.check import check_files

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise TrecexamError("give one track, or files", path=folders[0])
    if folders:
        with trecexam.open_track(folders[0]) as opened:
            checked: Checked = opened.bank.check()
    else:
        checked = check_files(paths)
    # What is to be looked at is what ends the command with 1.
    return replace(checked, rejected=checked.problems)
