"""`trecexam status`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam status mytrack")
@track_argument
@reading
def status(track: Path) -> Result:
    """What TRACK holds, how far grading is, and who is at work. Grades nothing.

    Of several graders there is a row for each, and a sum; --grader NAME shows all of one, --json of all.
    """
    with trecexam.open_track(track) as opened:
        return opened.status()
