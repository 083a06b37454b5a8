"""`trecexam judge agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam judge agreement mytrack")
@track_argument
@reading
def agreement(track: Path) -> Result:
    """Show how far the assessors of TRACK agree on passages that at least two judged, and where not.

    alpha is Krippendorff's, for ordered ratings of any number of people; kappa is Cohen's, of two;
    weighted_kappa has quadratic weights. Each person's last rating counts. A pipe gets the first table,
    --json the judgments on which people differ, too.
    """
    with trecexam.open_track(track) as opened:
        result: Result = opened.judging.agreement()
    return result
