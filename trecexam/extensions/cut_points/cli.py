"""`trecexam cut-points`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam cut-points mytrack")
@track_argument
@reading
def cut_points(track: Path) -> Result:
    """Fit the embedding grader's cut points to TRACK's official judgments, which must be 0..3.

    A row a rating: the cosine from which on a passage has it, by equipercentile linking with the judgments,
    and the one at which it is as probable as not. Nothing is written.
    """
    with trecexam.open_track(track) as opened:
        fitted: Result = opened.grading.cut_points()
    return fitted
