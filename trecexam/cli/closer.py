"""`trecexam compare`, `correlate`, `agreement`, `holes` and `history`: a leaderboard looked at closer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures
from trecexam.tables.result import Tables

if TYPE_CHECKING:
    from trecexam.features.holes.holes import By
    from trecexam.features.leaderboard.differences import Test
    from trecexam.scores.paired_tests import Correction
    from trecexam.tables.result import Result


#: Those of `trecexam.features.leaderboard.differences`, behind which is numpy.
TESTS = ("t", "randomisation")
CORRECTIONS = ("holm", "bonferroni", "fdr_bh", "fdr_by", "none")


@click.command(epilog="Example: trecexam compare mytrack --baseline bm25")
@track_argument
@measure_option
@click.option(
    "--baseline", metavar="RUN", help="Compare each run with this one [default: all pairs of runs]."
)
@click.option("--pairs", is_flag=True, help="Print the compared pairs of runs, a line a measure and pair.")
@click.option("--official", is_flag=True, help="On the official judgments instead of the grades.")
@click.option(
    "--test", type=click.Choice(TESTS), default="t", show_default=True, help="Paired, over queries."
)
@click.option(
    "--correction",
    type=click.Choice(CORRECTIONS),
    default="holm",
    show_default=True,
    help="Correct p values like this, over all comparisons by a measure.",
)
@reading
def compare(
    track: Path,
    measures: tuple[str, ...],
    baseline: str | None,
    pairs: bool,
    official: bool,
    test: Test,
    correction: Correction,
) -> Result:
    """Which runs of TRACK differ significantly, by a paired test over queries.

    All pairs of runs are compared by the first measure: runs that share a letter do not differ significantly,
    that is, the corrected p value is at least 0.05.

    With --baseline each run is compared with RUN by each measure, in the columns of PyTerrier's
    pt.Experiment(baseline=...): queries on which a run is better (+) or worse (-), p-value, reject, p-value
    corrected; before them the difference of the means and its effect size (Cohen's d_z).

    --pairs prints the comparisons in the shape of out/differences.tsv.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        return opened.compare(
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
    rank-biased overlap (p = 0.9), tau-b among the 10, 15 and 20 best runs of the official side
    (kendall@10 ...; empty with fewer runs), and of the scores themselves Pearson's r and tau_GAP. Over the
    runs and queries that both sides have. With 95% intervals over queries: none of fewer than five queries,
    or where the runs have fewer than five distinct values on a side, nor of Pearson's r and tau_GAP.

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


@click.command(epilog="Example: trecexam agreement mytrack --min-answers 2 --min-relevant 2 --latex")
@track_argument
@click.option(
    "--min-rating",
    "min_ratings",
    type=click.IntRange(1, 5),
    multiple=True,
    metavar="N",
    help="From this rating on, a passage reaches an item; may be repeated [default: --min-relevant where "
    "the scales are the same, else the track's, 4].",
)
@click.option(
    "--min-answers",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Items a passage must reach; may be repeated [default: the track's, 1].",
)
@click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    metavar="N",
    help="From this official label on, a passage is relevant [default: --min-rating where the "
    "scales are the same, else the track's, 1].",
)
@reading
def agreement(
    track: Path, min_ratings: tuple[int, ...], min_answers: tuple[int, ...], min_relevant: int | None
) -> Result:
    """Automatic labels of TRACK (rows) by people's judgments (columns), and Cohen's kappa.

    Graded, merged and binary tables over the passages that have both labels, with 95% intervals that take
    the passages of a query as dependent. A row's kappa is that of its label against the judgment that it
    is paired with.

    Where labels and judgments are on the same scale, both have the same threshold by default: the greater of
    the track's min_rating and min_relevant.

    Published tables for TREC DL 2019 are those of --min-answers 2 --min-relevant 2 on a track with
    `pool_judged = true` in [track] (`init --pool-judged`): they are over all judged passages, while by
    default only those in the runs' first ranks have a label.
    """
    with trecexam.open_track(track) as opened:
        return opened.agreement(min_ratings, min_answers, min_relevant)


@click.command(epilog="Example: trecexam holes mytrack --depth 10 --depth 20 --by run")
@track_argument
@click.option(
    "--depth",
    "depths",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="K",
    help="How many first ranks count; may be repeated, the first sorts [default: the track's, 20].",
)
@click.option(
    "--by",
    type=click.Choice(["query", "run"]),
    help="A row for each query, after one over all; or only that one [default: run on a terminal and with "
    "--table, query in a pipe].",
)
@reading
def holes(track: Path, depths: tuple[int, ...], by: By | None) -> Result:
    """Judgment holes of TRACK's runs: unjudged and ungraded passages in their first ranks.

    A row for each run and query of the bank, and one over all queries (`all`): passages retrieved in the
    first K ranks, how many of them have no official judgment, how many no grade, and ir_measures' Judged@K.
    Runs with most unjudged passages come first. A negative official label is a judgment.
    """
    with trecexam.open_track(track) as opened:
        return opened.holes(depths or None, by=by)


@click.command(epilog="Example: trecexam history mytrack  then  trecexam history mytrack 3 --labels")
@track_argument
@click.argument("entry", type=click.IntRange(min=1), required=False, metavar="[N]")
@click.option("--labels", is_flag=True, help="Every label that changed [default N: the last].")
@reading
def history(track: Path, entry: int | None, labels: bool) -> Result:
    """Which runs of TRACK moved at each change of files, bank or settings, and because of which labels.

    Without N a line for each entry of out/history/, the latest last; with N the runs that moved, as in
    out/history/log.tsv. `moved` counts runs whose mean or rank changed, `up` and `down` those whose rank did.
    Runs with equal means share a rank.
    """
    with trecexam.open_track(track) as opened:
        if entry is None and not labels:
            return opened.history()
        found = opened.history.entry(entry)
    return Tables({"labels": found.tables["labels"]}, about=found.facts) if labels else found
