"""`trecexam agreement`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam agreement mytrack --min-answers 2 --min-relevant 2 --latex")
@track_argument
@click.option(
    "--min-rating",
    "min_ratings",
    type=click.IntRange(1, 5),
    multiple=True,
    metavar="N",
    help="From this rating on, a passage reaches an item; may be repeated [default: --min-relevant where "
    "the scales are the same, else the track's, 4].",
)
@click.option(
    "--min-answers",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Items a passage must reach; may be repeated [default: the track's, 1].",
)
@click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    metavar="N",
    help="From this official label on, a passage is relevant [default: --min-rating where the "
    "scales are the same, else the track's, 1].",
)
@reading
def agreement(
    track: Path, min_ratings: tuple[int, ...], min_answers: tuple[int, ...], min_relevant: int | None
) -> Result:
    """Automatic labels of TRACK (rows) by people's judgments (columns), and Cohen's kappa.

    Graded, merged and binary tables over the passages that have both labels, with 95% intervals that take
    the passages of a query as dependent. A row's kappa is that of its label against the judgment that it
    is paired with.

    Where labels and judgments are on the same scale, both have the same threshold by default: the greater of
    the track's min_rating and min_relevant.

    Published tables for TREC DL 2019 are those of --min-answers 2 --min-relevant 2 on a track with
    `pool_judged = true` in [track] (`init --pool-judged`): they are over all judged passages, while by
    default only those in the runs' first ranks have a label.
    """
    with trecexam.open_track(track) as opened:
        return opened.agreement(min_ratings, min_answers, min_relevant)
