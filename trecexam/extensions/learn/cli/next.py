"""`trecexam learned-next`."""

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


@click.command(
    epilog="Example: trecexam learned-next mytrack --per-query 10; trecexam learned-next mytrack --budget 200"
)
@track_argument
@click.option(
    "--per-query", type=click.IntRange(min=1), metavar="K", help="Passages of each query  [default: 5]"
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Judgments in all, --per-query of each query at most; fewer where more do not move the leaderboard.",
)
@reading
def learned_next(
    track: Path,
    per_query: int | None,
    budget: int | None,
) -> Result:
    """The passages of TRACK from whose judgments `trecexam learn` learns most: what people should judge next.

    A plan for nDCG@10: of each query the most retrieved passages that nobody judged, by which the leaderboard
    gains, and a random share, by which labels gain. `gain` is the expected judgment, `sd` its standard
    deviation. It needs no grade; the first time passages are encoded, as by `trecexam learn`.
    """
    with trecexam.open_track(track) as opened, show.grading("encoding", "encoded", "passages") as encoding:
        plan: Result = opened.learn.next(
            per_query=per_query,
            budget=budget,
            progress=show.steps(encoding),
        )
    return plan
