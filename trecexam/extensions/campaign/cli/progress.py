"""`trecexam judge progress`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.extensions.campaign.progress import Progress
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam judge progress mytrack --topics")
@track_argument
@click.option("--topics", is_flag=True, help="A row for each assessor and topic.")
@reading
def progress(track: Path, topics: bool) -> Result:
    """How far each assessor of TRACK is with the plan.

    A passage is done when all that is asked about it is judged. median_seconds and per_hour are of judgments
    and of active work, as far as it was timed.
    """
    with trecexam.open_track(track) as opened:
        found: Progress = opened.judging.progress()
    return replace(found, by="topic") if topics else found
