"""`trecexam learned-leaderboard` and `cross-validate`: runs by learned labels, and their validation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam learned-leaderboard mytrack")
@track_argument
@click.option(
    "--insist",
    is_flag=True,
    help="Show it even if another method orders the runs better; a note names that method.",
)
@reading
def learned_leaderboard(track: Path, insist: bool) -> Result:
    """Show TRACK's runs by expected nDCG@10 and AP, with learned labels for missing judgments.

    First hides half of the judgments to check that learned labels order the runs at least as well as giving
    0 to unjudged passages, and as leaving these out. If not, names the better method and exits with status
    1. AP counts the pool's depth; Judged@10 is the judged share of the first ten passages. Writes nothing.
    """
    from trecexam.extensions.learn.learned_board import NotTrustedError

    with trecexam.open_track(track) as opened:
        try:
            board: Result = opened.learn.leaderboard(insist=insist)
        except NotTrustedError as error:
            click.echo(f"trecexam: {error}", err=True)
            raise click.exceptions.Exit(1) from None
    return board


@click.command(epilog="Example: trecexam cross-validate mytrack")
@track_argument
@reading
def cross_validate(track: Path) -> Result:
    """Show how well `trecexam learn` predicts hidden judgments of TRACK, next to simple methods.

    The learned leaderboard is compared with unjudged passages as 0 and with leaving these out; the labels
    for `fill` with open holes and with the grader's labels. Stores the best method for `trecexam fill`.
    """
    with trecexam.open_track(track) as opened:
        validation: Result = opened.learn.cross_validate()
    return validation
