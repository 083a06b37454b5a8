"""`trecexam learned-leaderboard` and `cross-validate`: what learned labels say of runs, and how well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam learned-leaderboard mytrack")
@track_argument
@click.option(
    "--insist", is_flag=True, help="Show it where another way orders the runs better, too; a note says so."
)
@reading
def learned_leaderboard(track: Path, insist: bool) -> Result:
    """Show TRACK's runs by expected nDCG@10 and AP, with learned labels for missing judgments.

    Half of the judgments are hidden first, to see whether learned labels order the runs no worse than giving
    0 to unjudged passages and than leaving these out. Where they do not, it names the better way and ends
    with exit status 1. AP is down to the pool's depth; Judged@10 is the share of a run's first ten passages
    that people judged. Writes nothing.
    """
    from trecexam.extensions.learn.learned_board import NotTrustedError

    with trecexam.open_track(track) as opened, show.grading("encoding", "encoded", "texts") as encoding:
        try:
            board: Result = opened.learn.leaderboard(insist=insist, progress=show.steps(encoding))
        except NotTrustedError as error:
            click.echo(f"trecexam: {error}", err=True)
            raise click.exceptions.Exit(1) from None
    return board


@click.command(epilog="Example: trecexam cross-validate mytrack")
@track_argument
@reading
def cross_validate(track: Path) -> Result:
    """Show how good `trecexam learn` is on judgments of TRACK that are hidden from it, beside plain ways.

    What the learned leaderboard prints is compared with unjudged passages as 0 and with lists without them;
    what `fill` writes with holes left open and with the grader's labels. Keeps for `trecexam fill` which way
    is best.
    """
    with (
        trecexam.open_track(track) as opened,
        show.grading("encoding", "encoded", "texts") as encoding,
        show.grading("validating", "done", "fits") as fitting,
    ):
        validation: Result = opened.learn.cross_validate(
            progress=show.steps(encoding), steps=show.steps(fitting)
        )
    return validation
