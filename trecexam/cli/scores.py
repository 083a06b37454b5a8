"""`trecexam leaderboard`, and what all commands that show scores say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, measure_option, track_argument
from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    from trecexam.api import Track

#: What `Track.said` gives where nobody rated anything.
NOBODY = {"cells": 0, "passages": 0, "who": []}


@click.command(epilog="Example: trecexam leaderboard mytrack -m 'Cover(rel=4)@20' -m nDCG@10")
@track_argument
@measure_option
@click.option("--official", is_flag=True, help="On the official judgments instead of the grades.")
@click.option(
    "--compat",
    type=click.Choice(["workbench"]),
    help="Print what changes where answers are read as the workbench's released code does.",
)
@json_option
def leaderboard(
    track: Path, measures: tuple[str, ...], official: bool, compat: str | None, as_json: bool
) -> None:
    """Runs of TRACK, best first by the first measure, with standard errors.

    Uses the grades that are there; `trecexam watch` makes them. Means are over all queries of the bank (with
    --official: of the official judgments), as trec_eval -c.
    """
    if compat is not None:
        if official:
            raise click.UsageError("--compat is about the grades; --official uses none")
        with trecexam.open_track(track) as opened, bad_measures():
            difference = opened.compare_readings(compat, measures or None)
        click.echo(
            f"{difference.differ:,} of {difference.cells:,} ratings differ when read as '{compat}'", err=True
        )
        show.table(difference.table, as_json=as_json)
        return
    with trecexam.open_track(track) as opened, bad_measures():
        board = opened.leaderboard(measures or None, official=official)
        files = {name: opened.folder.shown(path) for name, path in opened.run_files().items()}
        # Nothing of the grades, the grader's or people's, is in the official judgments.
        human_ratings = NOBODY if official else opened.override_summary()
        if not official:
            say_what_is_missing(opened)
    if not board.rows:
        click.echo(f"no runs yet: drop some into {opened.folder.runs}", err=True)
    # Behind it is numpy, which --help must not wait for.
    from trecexam.features.leaderboard import tables as results

    show.table(
        results.leaderboard_table(board),
        as_json=as_json,
        json_value=results.leaderboard_json(board, files, human_ratings) if as_json else None,
    )


def say_what_is_missing(track: Track) -> None:
    """Says what people rated, which cells have no grade and which passages no text."""
    show.human(track)
    show.missing(track)


class bad_measures:  # noqa: N801 - reads as a block, not as a class
    """Turns a measure that cannot be computed into a one-line error."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if type(error) is ValueError:
            raise TrecexamError(str(error)) from None
