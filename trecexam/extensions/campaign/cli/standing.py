"""`trecexam judge progress` and `trecexam judge agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam judge progress mytrack")
@track_argument
@reading
def progress(track: Path) -> Result:
    """How far each assessor of TRACK is with the plan, in all and by topic.

    A passage is done when all that is asked about it is judged. median_seconds and per_hour are of judgments
    and of active work, as far as it was timed. A pipe is given the assessors, --json the topics, too.
    """
    with trecexam.open_track(track) as opened:
        found: Result = opened.judging.progress()
    return found


@click.command(epilog="Example: trecexam judge agreement mytrack")
@track_argument
@reading
def agreement(track: Path) -> Result:
    """How far the assessors of TRACK agree on what at least two of them judged, and where they differ.

    alpha is Krippendorff's, for ordered ratings of any number of people; kappa is Cohen's, of two, and
    weighted_kappa the same with quadratic weights. Each person's last rating counts here. A pipe is given the
    first table, --json the judgments on which people differ, too.
    """
    with trecexam.open_track(track) as opened:
        found: Result = opened.judging.agreement()
    return found
