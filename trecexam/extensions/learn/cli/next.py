"""`trecexam learned-next` and `settle`: plans of judgments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

import trecexam
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(
    epilog="Example: trecexam learned-next mytrack --per-query 10; trecexam learned-next mytrack --budget 200"
)
@track_argument
@click.option(
    "--per-query", type=click.IntRange(min=1), metavar="K", help="List K passages per query [default: 5]."
)
@click.option(
    "--budget", type=click.IntRange(min=1), metavar="N", help="List N passages in total, evenly over queries."
)
@click.option(
    "--by",
    type=click.Choice(["retrieved", "mtc"]),
    default="retrieved",
    show_default=True,
    help="Sort by how many runs retrieve a passage, with a tenth at random; or by what it tells about the "
    "order of the runs (minimal test collections).",
)
@reading
def learned_next(
    track: Path, per_query: int | None, budget: int | None, by: Literal["retrieved", "mtc"]
) -> Result:
    """List what people should judge next, so that leaderboards and labels of TRACK gain most.

    Queries take turns, one passage each. `gain` is the expected judgment, `sd` its standard deviation. Needs
    no grades and no bank; the first call encodes texts, as `trecexam learn` does.
    """
    with trecexam.open_track(track) as opened:
        plan: Result = opened.learn.next(per_query=per_query, budget=budget, by=by)
    return plan


@click.command(epilog='Example: trecexam settle mytrack "bm25 > dense" -o judge-these.tsv')
@track_argument
@click.argument("claim")
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    metavar="N",
    help="Plan at most N passages.",
)
@reading
def settle(track: Path, claim: str, most: int) -> Result:
    """Show whether CLAIM survives full judging of TRACK: "A > B", "A > B > C", or "the first five".

    Prints the probability that the order of the runs by nDCG@10 over these queries stays the same once the
    whole pool is judged, and the run pairs that decide it. If it is open, lists the passages whose judgments
    decide it soonest, best first. A pipe or -o gets this plan; `trecexam judge plan TRACK --passages PLAN`
    assigns it.
    """
    with trecexam.open_track(track) as opened:
        settled: Result = opened.learn.settle(claim, most=most)
    return settled
