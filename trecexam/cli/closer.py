"""`trecexam compare`, `correlate`, `agreement` and `holes`: checks of a leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures
from trecexam.results.result import Result

if TYPE_CHECKING:
    from trecexam.features.holes.holes import By
    from trecexam.features.leaderboard.differences import Test
    from trecexam.scores.paired_tests import Correction
    from trecexam.track import Track


#: Copies of values in `trecexam.features.leaderboard.differences`, which imports numpy.
TESTS = ("t", "randomisation")
CORRECTIONS = ("holm", "bonferroni", "fdr_bh", "fdr_by", "none")


@click.command(epilog="Example: trecexam compare mytrack --baseline bm25")
@track_argument
@measure_option
@click.option(
    "--baseline", metavar="RUN", help="Compare each run with this one [default: all pairs of runs]."
)
@click.option(
    "--pairs",
    is_flag=True,
    help="Print the compared pairs, one line per measure and pair, as out/differences.tsv.",
)
@click.option("--official", is_flag=True, help="Use the official judgments instead of the grades.")
@click.option(
    "--test",
    type=click.Choice(TESTS),
    default="t",
    show_default=True,
    help="Use this paired test over queries.",
)
@click.option(
    "--correction",
    type=click.Choice(CORRECTIONS),
    default="holm",
    show_default=True,
    help="Correct p values with this method, over all comparisons by one measure.",
)
@reading
def compare(
    track: Track,
    measures: tuple[str, ...],
    baseline: str | None,
    pairs: bool,
    official: bool,
    test: Test,
    correction: Correction,
) -> Result:
    """Test which runs of TRACK differ significantly.

    By default all pairs of runs are compared by the first measure. Runs that share a letter do not differ
    significantly (corrected p value of at least 0.05).

    With --baseline, each run is compared with RUN by each measure. The columns are those of PyTerrier's
    pt.Experiment(baseline=...): queries on which the run is better (+) or worse (-), p-value, reject,
    corrected p-value. The difference of the means and its effect size (Cohen's d_z) come first.
    """
    with bad_measures():
        return track.compare(
            measures or None,
            baseline=baseline,
            test=test,
            correction=correction,
            official=official,
            pairs=pairs,
        )


official_measure_option = click.option(
    "--official-measure",
    "official_measures",
    multiple=True,
    metavar="MEASURE",
    help="Compute this measure on the official judgments; may be repeated. `official_leaderboard` is the "
    "official ranking [default: the track's].",
)


@click.command(epilog="Example: trecexam correlate mytrack -m 'P(rel=4)@20' --official-measure nDCG@10")
@track_argument
@measure_option
@official_measure_option
@click.option(
    "--thresholds", is_flag=True, help="Repeat the automatic measures with every rating as the threshold."
)
@click.option("--per-query", is_flag=True, help="Print one row per query instead of one over all.")
@reading
def correlate(
    track: Track,
    measures: tuple[str, ...],
    official_measures: tuple[str, ...],
    thresholds: bool,
    per_query: bool,
) -> Result:
    """Correlate TRACK's leaderboard with the official one, for each pair of measures.

    The official side is qrels.txt, or official_leaderboard.json ({"bm25": 2, "dense": 1}) in TRACK. Shows
    Kendall's tau-b, Spearman's rho, tau_AP (the official side is the truth), tau_AP,b (symmetric),
    rank-biased overlap (p = 0.9), tau-b of the 10, 15 and 20 best official runs (kendall@10 ...), Pearson's
    r and tau_GAP. Only runs and queries of both sides count. Intervals are 95% over queries, from five
    queries on.

    For unrelated leaderboards, rank-biased overlap is near (1 - P^n) / (n (1 - P)) with n runs, all others
    near 0. A note names the runs with the largest rank differences.
    """
    with bad_measures():
        ratings = track.grading.thresholds() if thresholds else ()
        return track.correlate(
            measures or None, official_measures or None, min_ratings=ratings, per_query=per_query
        )


@click.command(epilog="Example: trecexam agreement mytrack --min-answers 2 --min-relevant 2")
@track_argument
@click.option(
    "--min-rating",
    "min_ratings",
    type=click.IntRange(1, 5),
    multiple=True,
    metavar="N",
    help="Count a passage as reaching an item from this rating on; may be repeated [default: "
    "--min-relevant if the scales are the same, else the track's, 4].",
)
@click.option(
    "--min-answers",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Require a passage to reach this many items; may be repeated [default: the track's, 1].",
)
@click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    metavar="N",
    help="Count a passage as relevant from this official label on [default: --min-rating if the scales are "
    "the same, else the track's, 1].",
)
@reading
def agreement(
    track: Track, min_ratings: tuple[int, ...], min_answers: tuple[int, ...], min_relevant: int | None
) -> Result:
    """Compare TRACK's automatic labels (rows) with official judgments (columns), with Cohen's kappa.

    Shows graded, merged and binary tables of the passages that have both labels. The 95% intervals treat the
    passages of a query as dependent. A row's kappa compares its label with the judgment in `against`.

    If labels and judgments have the same scale, both use the same threshold by default: the greater of the
    track's min_rating and min_relevant.

    For the published tables of TREC DL 2019, use --min-answers 2 --min-relevant 2 on a track made with `init
    --pool-judged`. It labels all judged passages; by default only those in the first ranks have labels.

    With a grader of support, compares its labels of citations with people's.
    """
    return track.agreement(min_ratings, min_answers, min_relevant)


@click.command(epilog="Example: trecexam holes mytrack --depth 10 --depth 20 --by run")
@track_argument
@click.option(
    "--depth",
    "depths",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="K",
    help="Look at the first K ranks; may be repeated, the first one sorts [default: the track's, 20].",
)
@click.option(
    "--by",
    type=click.Choice(["query", "run"]),
    help="Print one row per query after one over all, or one per run only [default: run on a terminal, "
    "query in a pipe].",
)
@reading
def holes(track: Track, depths: tuple[int, ...], by: By | None) -> Result:
    """List the judgment holes of TRACK's runs: unjudged or ungraded passages in their first ranks.

    One row per run and query of the bank, and one per run over all queries (`all`): passages in the first K
    ranks, how many lack an official judgment, how many lack a grade, and ir_measures' Judged@K. Runs with
    the most unjudged passages come first.
    """
    return track.holes(depths or None, by=by)
