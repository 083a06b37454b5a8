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
@click.option("--query", "queries", multiple=True, metavar="QUERY_ID", help="Only these; may be repeated.")
@click.option(
    "--per-query", type=click.IntRange(min=1), metavar="K", help="Passages of each query  [default: 5]"
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Judgments in all, in place of --per-query; fewer where more would not move the leaderboard.",
)
@click.option(
    "--random",
    "random_share",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="The share that is drawn at random.",
)
@click.option(
    "--stop-below",
    type=click.FloatRange(0),
    default=0.01,
    show_default=True,
    metavar="TAU",
    help="Of --budget: stop where the next passage of each query is expected to move the leaderboard less.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of what is random.")
@reading
def learned_next(
    track: Path,
    queries: tuple[str, ...],
    per_query: int | None,
    budget: int | None,
    random_share: float,
    stop_below: float,
    seed: int,
) -> Result:
    """The passages of TRACK from whose judgments `trecexam learn` learns most: what people should judge next.

    A plan for nDCG@10: of each query the most retrieved passages that nobody judged, by which the leaderboard
    gains, and a random share, by which labels gain. `gain` is the expected judgment, `sd` its standard
    deviation. It needs no grade; the first time passages are encoded, as by `trecexam learn`.
    """
    with trecexam.open_track(track) as opened, show.grading("encoding", "encoded", "passages") as encoding:
        plan: Result = opened.learn.next(
            query_ids=queries,
            per_query=per_query,
            budget=budget,
            random_share=random_share,
            stop_below=stop_below,
            seed=seed,
            progress=show.steps(encoding),
        )
    return plan
