"""`trecexam export pool`, `verify readings` and `overall`."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.export import emit, output_option
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam export pool mytrack -o graded.jsonl.gz")
@track_argument
@output_option
def pool(track: Path, output: Path | None) -> None:
    """Write TRACK's pool with its grades in the format of the Rubric workbench.

    One line per query, with texts, ranks in the runs, official judgments and the grader's own grades of
    every pooled passage. End FILE in .gz for the workbench; it reads no other. The `recorded` grader reads
    this file.
    """
    # The formats are half of --help's time.
    from trecexam.extensions.workbench.format import write_pool

    buffer = io.BytesIO()
    with trecexam.open_track(track) as opened:
        write_pool(opened.export.pool(), buffer)
    content = buffer.getvalue()
    if output is not None and output.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    emit(content, output)


@click.command(epilog="Example: trecexam verify readings mytrack -m 'P(rel=4)@20'")
@track_argument
@measure_option
@reading
def readings(track: Path, measures: tuple[str, ...]) -> Result:
    """Show which means change if answers are read as the Rubric workbench's released code reads them.

    One row per run and measure; no model runs. To use this reading for the track, set `compat = "workbench"`
    in [grader].
    """
    with trecexam.open_track(track) as opened, bad_measures():
        result: Result = opened.verify.readings(measures=measures or None)
    return result


@click.command(epilog="Example: trecexam overall mytrack -m 'Cover(rel=4)@20'")
@track_argument
@measure_option
@reading
def overall(track: Path, measures: tuple[str, ...]) -> Result:
    """Show TRACK's leaderboard with what all runs reach together, and the official ranks.

    _overall_ is what all pooled passages reach together, whatever the measure's cutoff; only Cover and
    nCover have it. The last column is the official rank, if TRACK has an official leaderboard.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        result: Result = opened.overall(measures or None)
    return result
