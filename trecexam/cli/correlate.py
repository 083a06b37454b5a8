"""`trecexam correlate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import aligned_option, json_option, measure_option, track_argument, wide_option
from trecexam.cli.scores import NOBODY, bad_measures, say_what_is_missing
from trecexam.tables.fitted import Layout

if TYPE_CHECKING:
    from trecexam.features.correlation.comparison import LeaderboardComparison, Outliers, SwappedPairs
    from trecexam.features.correlation.representative import RepresentativeQueries

#: What a row of any of its tables is about, and what a terminal shows before all else.
LAYOUT = Layout(
    keys=("measure", "official_measure", "min_rating", "n_queries", "query_id", "run_a", "run_b", "run"),
    first=("kendall_tau", "spearman_rho", "tau_ap", "tau_ap_b", "rbo", "verdict", "kendall@10"),
)


@click.command(epilog="Example: trecexam correlate mytrack -m 'P(rel=4)@20' --official-measure nDCG@10")
@track_argument
@measure_option
@click.option(
    "--official-measure",
    "official_measures",
    multiple=True,
    metavar="MEASURE",
    help="On the official judgments; may be repeated. `official_leaderboard` is the official ranking.",
)
@click.option(
    "--min-rating",
    "min_ratings",
    multiple=True,
    type=click.IntRange(1, 5),
    metavar="N",
    help="Rubric measures with this rating as threshold, instead of the track's; may be repeated.",
)
@click.option("--thresholds", is_flag=True, help="Every --min-rating that there is.")
@click.option("--per-query", is_flag=True, help="One row a query instead of one over all.")
@click.option("--swaps", is_flag=True, help="Print the pairs of runs that are swapped, with paired tests.")
@click.option(
    "--outliers",
    is_flag=False,
    flag_value=10,
    type=click.IntRange(min=1),
    metavar="[N]",
    help="Print the N (10) runs that sit furthest from the diagonal. Stands after TRACK where N is left out.",
)
@click.option(
    "--representative",
    is_flag=False,
    flag_value=10,
    type=click.IntRange(min=1),
    metavar="[N]",
    help="Print N (10) queries that order the runs as all do. Stands after TRACK where N is left out.",
)
@click.option(
    "--learned",
    is_flag=True,
    help="Expected nDCG and AP by labels learned from the judgments, instead of the grades.",
)
@click.option(
    "--rbo-p",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="P",
    help="Persistence of rank-biased overlap: 0.9, the default, gives the first ten ranks 86% of the weight.",
)
@wide_option
@aligned_option
@json_option
def correlate(
    track: Path,
    measures: tuple[str, ...],
    official_measures: tuple[str, ...],
    min_ratings: tuple[int, ...],
    thresholds: bool,
    per_query: bool,
    swaps: bool,
    outliers: int | None,
    representative: int | None,
    learned: bool,
    rbo_p: float | None,
    wide: bool,
    aligned: bool,
    as_json: bool,
) -> None:
    """How far TRACK's leaderboard agrees with the official one, for each pair of measures.

    Kendall's tau-b, Spearman's rho, tau_AP (the official side is the truth), tau_AP,b (symmetric),
    rank-biased overlap, and tau-b among the 10, 15 and 20 best runs of the official side (kendall@10 ...;
    empty with fewer runs). Over the runs and queries that both sides have. With 95% intervals over queries:
    none of fewer than five queries, or where the runs have fewer than five distinct values on a side.

    Two unrelated leaderboards have coefficients near 0, but for rank-biased overlap, which is then near
    (1 - P^n) / (n (1 - P)) with n runs.

    --swaps: run_a is better officially and run_b on the rubric. p of two-sided paired t tests over queries;
    .holm is adjusted over all pairs of runs. The verdict is active (both differences significant at 0.05),
    mixed (one) or passive (none).

    --outliers: ranks from 1, tied runs share their mean rank; a difference below 0 says that the rubric
    places the run too high.

    --swaps and --outliers are of the first measure of each side unless measures are given.

    --representative: queries chosen one after the other, so that the leaderboard on them is nearest to that
    on all queries, by Kendall's tau, on the grades (first measure unless given) and with --official-measure
    on the judgments. They fit the runs that are here: .chosen_half is tau where they are chosen on half of
    the runs, .other_half that of the same queries on the other half, .random_queries that of random ones.

    --learned compares the leaderboard of `trecexam leaderboard --learned`; intervals hold what is uncertain
    in its labels, too. It is learned from the official judgments, so only an official leaderboard tests it.
    """
    if sum((per_query, swaps, outliers is not None, representative is not None)) > 1:
        raise click.UsageError(
            "--per-query, --swaps, --outliers and --representative are four tables; ask for one"
        )
    others = (measures, min_ratings, thresholds, per_query, swaps, outliers, representative)
    if learned and any(others):
        raise click.UsageError("--learned goes with --official-measure and --rbo-p, and with nothing else")
    if representative is not None and (min_ratings or thresholds or rbo_p is not None):
        raise click.UsageError("--representative goes with none of --min-rating, --thresholds and --rbo-p")
    if rbo_p is not None and (swaps or outliers):
        raise click.UsageError("--rbo-p is about the correlations; --swaps and --outliers have none")
    with trecexam.open_track(track) as opened, bad_measures():
        chosen = measures or None, official_measures or None
        ratings = sorted({*min_ratings, *(opened.thresholds() if thresholds else ())})
        shown: LeaderboardComparison | SwappedPairs | Outliers | RepresentativeQueries | None
        if learned:
            with show.grading("encoding", "encoded", "passages") as encoding:
                shown = opened.learn.correlate(
                    official_measures or None, rbo_p=rbo_p, progress=show.steps(encoding)
                )
        elif representative is not None:
            shown = opened.representative(*chosen, most=representative)
        elif swaps:
            shown = opened.swaps(*chosen, min_ratings=ratings)
        elif outliers is not None:
            shown = opened.outliers(*chosen, min_ratings=ratings, most=outliers)
        else:
            shown = opened.correlate(*chosen, min_ratings=ratings, per_query=per_query, rbo_p=rbo_p)
        if shown is None:
            raise opened.nothing_to_compare()
        if not learned:
            say_what_is_missing(opened)
        human_ratings = NOBODY if learned else opened.override_summary()
    value = shown.as_json()
    if isinstance(value, dict):
        value["human_ratings"] = human_ratings
    for line in shown.remarks:
        click.echo(line, err=True)
    show.table(shown.table(), as_json=as_json, json_value=value, layout=LAYOUT, wide=wide, aligned=aligned)
