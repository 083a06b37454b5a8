"""`trecexam holes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.features.holes.holes import By
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam holes mytrack --depth 10 --depth 20 --by run")
@track_argument
@click.option(
    "--depth",
    "depths",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="K",
    help="How many first ranks count; may be repeated, the first sorts [default: the track's, 20].",
)
@click.option(
    "--by",
    type=click.Choice(["query", "run"]),
    help="A row for each query, after one over all; or only that one [default: run on a terminal and with "
    "--table, query in a pipe].",
)
@reading
def holes(track: Path, depths: tuple[int, ...], by: By | None) -> Result:
    """Judgment holes of TRACK's runs: unjudged and ungraded passages in their first ranks.

    A row for each run and query of the bank, and one over all queries (`all`): passages retrieved in the
    first K ranks, how many of them have no official judgment, how many no grade, and ir_measures' Judged@K.
    Runs with most unjudged passages come first. A negative official label is a judgment.
    """
    with trecexam.open_track(track) as opened:
        return opened.holes(depths or None, by=by)
