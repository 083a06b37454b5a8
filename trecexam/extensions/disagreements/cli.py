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
    """Pairs of TRACK's runs that the official side orders otherwise, with paired tests.

    run_a is better officially and run_b on the rubric. p of two-sided paired t tests over queries; .holm is
    adjusted over all pairs of runs. The verdict is active (both differences significant at 0.05), mixed (one)
    or passive (none). By the first measure of each side unless measures are given.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        found: Result = opened.correlate.swaps(measures or None, official_measures or None)
    return found


@click.command(epilog="Example: trecexam outliers mytrack --most 5")
@track_argument
@measure_option
@official_measure_option
@click.option(
    "--most", type=click.IntRange(min=1), default=10, show_default=True, metavar="N", help="Print N runs."
)
@reading
def outliers(track: Path, measures: tuple[str, ...], official_measures: tuple[str, ...], most: int) -> Result:
    """The runs of TRACK that the rubric ranks most differently than the official side.

    Ranks from 1; tied runs share their mean rank. A difference below 0 says that the rubric places the run
    too high. By the first measure of each side unless measures are given.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        found: Result = opened.correlate.outliers(measures or None, official_measures or None, most=most)
    return found


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
    """Few queries of TRACK that order the runs as all queries do.

    They are chosen one after the other, so that the leaderboard on them is nearest to that on all queries, by
    Kendall's tau, on the grades (first measure unless given) and with --official-measure on the judgments.
    They fit the runs that are here: .chosen_half is tau where they are chosen on half of the runs,
    .other_half that of the same queries on the other half, .random_queries that of random ones.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        found: Result = opened.correlate.representative(
            measures or None, official_measures or None, most=most
        )
    return found
