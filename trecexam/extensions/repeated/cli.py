"""`trecexam repeat`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures
from trecexam.cli.signals import exit_status
from trecexam.cli.working import working
from trecexam.errors import TrecexamError
from trecexam.tables.result import Tables
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam repeat mytrack --samples 5")
@track_argument
@click.option(
    "--samples",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="N",
    help="How many answers each cell has in the end, with the first one.",
)
@click.option(
    "-m", "--measure", metavar="MEASURE", help="As ir_measures prints it [default: the track's first]."
)
@click.option(
    "--estimate", is_flag=True, help="Show how many cells, calls, tokens and how much money. Asks no server."
)
@reading
def repeat(track: Path, samples: int, measure: str | None, estimate: bool) -> Result:
    """Ask TRACK's server again, and show how far ranks move between times.

    Each cell is asked about until it has N answers, which are stored. A run's score is the mean over times;
    rank.sd is the rank's standard deviation in another judging of N times, rank.best and rank.worst are its
    95% interval. Cells whose rating differs between times are in --json.

    The server needs a temperature above 0 and no seed.

    Exit status: 0, or 1 when a time is incomplete and does not count; 130 after Ctrl-C.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        if estimate:
            columns = opened.repeat.estimate(samples).columns()
            return Tables({"estimate": Table(tuple(columns), (tuple(columns.values()),))})
        with working("grading", "graded", "cells") as work:
            try:
                done: Result = opened.repeat(samples, measure=measure, progress=work.progress, stop=work.stop)
            except TrecexamError:
                # Stopped before there was anything to show.
                if not work.caught:
                    raise
    if work.caught:
        click.echo("stopped; what came is stored, and the same command asks for the rest", err=True)
        click.get_current_context().exit(exit_status(work.caught, 1))
    return done
