"""`trecexam swaps`, `outliers` and `representative`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.closer import official_measure_option
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam swaps mytrack --official-measure nDCG@10")
@track_argument
@measure_option
@official_measure_option
@reading
def swaps(track: Path, measures: tuple[str, ...], official_measures: tuple[str, ...]) -> Result:
    """List pairs of TRACK's runs that the official side puts in the other order, with paired tests.

    run_a is better officially, run_b by the automatic labels. p is from two-sided paired t tests over
    queries; .holm is adjusted over all pairs of runs. The verdict is active (both differences significant at
    0.05), mixed (one) or passive (none). Default: the first measure of each side.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        result: Result = opened.correlate.swaps(measures or None, official_measures or None)
    return result


@click.command(epilog="Example: trecexam outliers mytrack --most 5")
@track_argument
@measure_option
@official_measure_option
@click.option(
    "--most", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="Print N runs."
)
@reading
def outliers(track: Path, measures: tuple[str, ...], official_measures: tuple[str, ...], most: int) -> Result:
    """List the runs of TRACK that the automatic and the official side rank most differently.

    Ranks start at 1; tied runs share their mean rank. A negative difference means that the automatic rank is
    too high. Default: the first measure of each side.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        result: Result = opened.correlate.outliers(measures or None, official_measures or None, most=most)
    return result


@click.command(epilog="Example: trecexam representative mytrack --most 5")
@track_argument
@measure_option
@official_measure_option
@click.option(
    "--most", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="Print N queries."
)
@reading
def representative(
    track: Path, measures: tuple[str, ...], official_measures: tuple[str, ...], most: int
) -> Result:
    """Find few queries of TRACK that order the runs as all queries do.

    Queries are added one by one, each to bring the leaderboard nearest to that of all queries by Kendall's
    tau: on the grades by the first measure, or -m; with --official-measure, on the judgments. To show how
    far this is fitted to these runs, .chosen_half is tau on the half of the runs that chose the queries,
    .other_half on the other half, .random_queries of random queries.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        result: Result = opened.correlate.representative(
            measures or None, official_measures or None, most=most
        )
    return result
