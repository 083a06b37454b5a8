"""`trecexam history`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading
from trecexam.tables.result import Tables

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam history mytrack  then  trecexam history mytrack 3 --labels")
@track_argument
@click.argument("entry", type=click.IntRange(min=1), required=False, metavar="[N]")
@click.option("--labels", is_flag=True, help="Every label that changed [default N: the last].")
@reading
def history(track: Path, entry: int | None, labels: bool) -> Result:
    """Which runs of TRACK moved at each change of files, bank or settings, and because of which labels.

    Without N a line for each entry of out/history/, the latest last; with N the runs that moved, as in
    out/history/log.tsv. `moved` counts runs whose mean or rank changed, `up` and `down` those whose rank did.
    Runs with equal means share a rank.
    """
    with trecexam.open_track(track) as opened:
        if entry is None and not labels:
            return opened.history()
        found = opened.history.entry(entry)
    return Tables({"labels": found.tables["labels"]}, about=found.facts) if labels else found
