"""`trecexam judge-next`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from trecexam.cli import bars
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.results.result import Result
    from trecexam.track import Track


@click.command(epilog="Example: trecexam judge-next mytrack -m nDCG@10 --top 50")
@track_argument
@click.option(
    "-m",
    "--measure",
    metavar="MEASURE",
    help="Rank runs by this measure on labels [default: the track's first].",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Print at most N rows.",
)
@click.option(
    "--query", "query_ids", multiple=True, metavar="QUERY_ID", help="Show only this query; may be repeated."
)
@reading
def judge_next(track: Track, measure: str | None, top: int, query_ids: tuple[str, ...]) -> Result:
    """List the unjudged passages that a person should judge next.

    With grades, passages whose judgment would change the ranking of the runs most come first.
    expected_change: mean change of the difference of two runs, over all pairs. p_change: probability of
    another label. The probability of a rating is its share of the passage's ratings on the query's items.

    Other passages, and all without grades, follow by how many runs rank them high; queries take turns.
    After `learn`, gain and sd are the expected judgment and its standard deviation.
    """
    with bars.progress("trying", "queries") as trying:
        found = track.judge_next(measure, query_ids=query_ids, top=top, progress=bars.steps(trying))
    given = click.get_current_context().get_parameter_source("top") is not ParameterSource.DEFAULT
    return replace(found, every=given)
