"""`trecexam learned-leaderboard` and `learned-correlate`: the leaderboard by learned labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.correlate import official_measure_option, rbo_p_option
from trecexam.cli.options import aligned_option, json_option, track_argument, wide_option
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures
from trecexam.tables.table import Layout

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam learned-leaderboard mytrack")
@track_argument
@click.option(
    "--these-queries", is_flag=True, help="Treat queries as fixed: intervals cover label uncertainty only."
)
@wide_option
@aligned_option
@json_option
def learned_leaderboard(track: Path, these_queries: bool, wide: bool, aligned: bool, as_json: bool) -> None:
    """Expected nDCG@10 and AP of TRACK's runs, where labels learned from judgments stand for missing ones.

    Scores are means over draws of what people would say of unjudged passages; .low and .high are 95%
    intervals, which hold what is uncertain in the labels and the queries. AP is down to the pool's depth,
    Judged@10 the share of a run's first ten passages that people judged. Nothing is written.
    """
    with trecexam.open_track(track) as opened, show.grading("encoding", "encoded", "passages") as encoding:
        board = opened.learn.leaderboard(these_queries=these_queries, progress=show.steps(encoding))
    for line in (board.summary(), *board.notes):
        click.echo(line, err=True)
    layout = Layout(("run",), ranks=board.ranks)
    show.table(
        board.table(), as_json=as_json, json_value=board.as_json(), layout=layout, wide=wide, aligned=aligned
    )


@click.command(epilog="Example: trecexam learned-correlate mytrack --official-measure official_leaderboard")
@track_argument
@official_measure_option
@rbo_p_option
@reading
def learned_correlate(track: Path, official_measures: tuple[str, ...], rbo_p: float | None) -> Result:
    """How far the leaderboard of `trecexam learned-leaderboard` agrees with the official one.

    Intervals hold what is uncertain in its labels, too. It is learned from the official judgments, so only an
    official leaderboard tests it.
    """
    with (
        trecexam.open_track(track) as opened,
        bad_measures(),
        show.grading("encoding", "encoded", "passages") as encoding,
    ):
        result: Result = opened.learn.correlate(
            official_measures or None, rbo_p=rbo_p, progress=show.steps(encoding)
        )
    return result
