"""`trecexam judge plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import track_argument
from trecexam.cli.reading import writing

if TYPE_CHECKING:
    from trecexam.tables.result import Result


def _share(ctx: click.Context, param: click.Parameter, text: str) -> float:
    """0.1 of `10%` and of `0.1`."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise click.BadParameter(f"'{text}': a share, 10% or 0.1")
    return share


@click.command(
    epilog="Example: trecexam judge plan mytrack --assessors ada,bob,eve --topics-each 10 --overlap 10% "
    "--budget 500"
)
@track_argument
@click.option(
    "--assessors", metavar="NAMES", required=True, help="Who judges, with commas between the names."
)
@click.option("--topics-each", type=click.IntRange(1), metavar="N", help="Topics of each at the most.")
@click.option(
    "--overlap",
    callback=_share,
    metavar="SHARE",
    default="0",
    help="Passages drawn at random that a second assessor judges, too: 10%.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="Passages to judge in all, evenly over topics; those that two judge count twice.",
)
@click.option(
    "--by",
    type=click.Choice(["change", "retrieved"]),
    help="The order within a topic: as judge-next lists, or what most runs have highest  [default: change; "
    "retrieved where nothing is graded]",
)
@click.option(
    "--passages",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Only the passages of this table with columns query_id and doc_id, in its order: what `settle`, "
    "`learned-next` and `judge-next` write with -o.",
)
@writing
def plan(
    track: Path,
    assessors: str,
    topics_each: int | None,
    overlap: float,
    budget: int | None,
    by: Literal["change", "retrieved"] | None,
    passages: Path | None,
) -> tuple[Result, int]:
    """Divide the passages of TRACK among assessors: a topic stays with one, and all have as much to do.

    The plan is TRACK/judging.tsv, a line a passage, which may be edited. Planned again, what is done stays,
    and topics stay with who began them; who is not named any more keeps what she did, others get the rest.
    """
    names = [name.strip() for name in assessors.split(",")]
    with trecexam.open_track(track) as opened, show.grading("ordering", "ordered", "queries") as bar:
        planned = opened.judging.plan(
            names,
            topics_each=topics_each,
            overlap=overlap,
            budget=budget,
            by=by,
            passages=passages,
            progress=show.steps(bar),
        )
    return planned, 0
