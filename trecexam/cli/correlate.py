"""`trecexam correlate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures

if TYPE_CHECKING:
    from trecexam.tables.result import Result

official_measure_option = click.option(
    "--official-measure",
    "official_measures",
    multiple=True,
    metavar="MEASURE",
    help="On the official judgments; may be repeated. `official_leaderboard` is the official ranking.",
)


@click.command(epilog="Example: trecexam correlate mytrack -m 'P(rel=4)@20' --official-measure nDCG@10")
@track_argument
@measure_option
@official_measure_option
@click.option(
    "--thresholds", is_flag=True, help="Repeat the rubric's measures with every rating as the threshold."
)
@click.option("--per-query", is_flag=True, help="One row a query instead of one over all.")
@reading
def correlate(
    track: Path,
    measures: tuple[str, ...],
    official_measures: tuple[str, ...],
    thresholds: bool,
    per_query: bool,
) -> Result:
    """How far TRACK's leaderboard agrees with the official one, for each pair of measures.

    Kendall's tau-b, Spearman's rho, tau_AP (the official side is the truth), tau_AP,b (symmetric),
    rank-biased overlap (p = 0.9), and tau-b among the 10, 15 and 20 best runs of the official side
    (kendall@10 ...; empty with fewer runs). Over the runs and queries that both sides have. With 95%
    intervals over queries: none of fewer than five queries, or where the runs have fewer than five distinct
    values on a side.

    Two unrelated leaderboards have coefficients near 0, but for rank-biased overlap, which is then near
    (1 - P^n) / (n (1 - P)) with n runs.

    `trecexam swaps` lists the pairs of runs in opposite orders, `trecexam outliers` the runs that are
    furthest from the diagonal.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        ratings = opened.grading.thresholds() if thresholds else ()
        return opened.correlate(
            measures or None, official_measures or None, min_ratings=ratings, per_query=per_query
        )
