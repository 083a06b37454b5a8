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
from trecexam.extensions.repeated import MOST
from trecexam.tables.result import Tables
from trecexam.tables.table import Table

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam repeat mytrack --samples 5")
@track_argument
@click.option(
    "--samples",
    type=click.IntRange(2, MOST),
    default=5,
    show_default=True,
    metavar="N",
    help=f"Take N repetitions in all, 2 to {MOST}; the first is that of `watch`.",
)
@click.option(
    "-m", "--measure", metavar="MEASURE", help="Rank runs by this measure [default: the track's first]."
)
@click.option(
    "--estimate",
    is_flag=True,
    help="Print the number of cells, calls and tokens and the cost. Calls no server.",
)
@reading
def repeat(track: Path, samples: int, measure: str | None, estimate: bool) -> Result:
    """Grade TRACK again with its server, and show how far ranks move between repetitions.

    Each repetition grades all cells, and its answers are stored. A run's score is the mean over the N
    repetitions. rank.sd is the standard deviation of its rank in another N repetitions; rank.best and
    rank.worst are the 95% interval. --json has the cells whose rating differs between repetitions. The server
    needs a temperature above 0 and no seed.

    Exit status: 0; 1 if a repetition is incomplete and does not count; 130 after Ctrl-C.
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
        click.echo("stopped; the answers so far are stored: run it again for the rest", err=True)
        click.get_current_context().exit(exit_status(work.caught, 1))
    return done
