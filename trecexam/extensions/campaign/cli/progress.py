"""`trecexam judge progress`."""

from __future__ import annotations

from pathlib import Path

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, track_argument


@click.command(epilog="Example: trecexam judge progress mytrack --topics")
@track_argument
@click.option("--topics", is_flag=True, help="A row for each assessor and topic.")
@json_option
def progress(track: Path, topics: bool, as_json: bool) -> None:
    """How far each assessor of TRACK is with the plan.

    A passage is done when all that is asked about it is judged. median_seconds and per_hour are of judgments
    and of active work, as far as it was timed.
    """
    with trecexam.open_track(track) as opened:
        found = opened.judging.progress()
    show.table(found.table(topics=topics), as_json=as_json)
