"""`trecexam judge plan`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import bars
from trecexam.cli.options import track_argument
from trecexam.cli.reading import writing

if TYPE_CHECKING:
    from trecexam.tables.result import Result


def _share(ctx: click.Context, param: click.Parameter, text: str) -> float:
    """Reads a share: `10%` and `0.1` are 0.1."""
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
    "--assessors",
    metavar="NAMES",
    required=True,
    help="Divide the work among these people, separated by commas.",
)
@click.option(
    "--topics-each",
    type=click.IntRange(1),
    metavar="N",
    help="Give each at most N topics [default: no limit].",
)
@click.option(
    "--overlap",
    callback=_share,
    metavar="SHARE",
    default="0",
    help="Have a second assessor judge this share of the passages, drawn at random: 10%.",
)
@click.option(
    "--budget",
    type=click.IntRange(1),
    metavar="N",
    help="Plan N judgments in total, evenly over topics [default: the whole pool]. A passage for two "
    "assessors counts twice.",
)
@click.option(
    "--passages",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Plan only the passages of this table with columns query_id and doc_id, in its order, as "
    "`judge-next -o` writes it [default: the whole pool, in the order of judge-next].",
)
@writing
def plan(
    track: Path,
    assessors: str,
    topics_each: int | None,
    overlap: float,
    budget: int | None,
    passages: Path | None,
) -> tuple[Result, int]:
    """Divide the passages of TRACK among assessors, each topic to one, with equal work for all.

    Writes TRACK/judging.tsv, one passage per line, which you may edit. Run it again to change the plan:
    finished work stays, and topics stay with who began them. Open topics of assessors that you no longer
    name go to others.
    """
    names = [name.strip() for name in assessors.split(",")]
    with trecexam.open_track(track) as opened, bars.grading("ordering", "ordered", "queries") as bar:
        planned = opened.judging.plan(
            names,
            topics_each=topics_each,
            overlap=overlap,
            budget=budget,
            passages=passages,
            progress=bars.steps(bar),
        )
    return planned, 0
