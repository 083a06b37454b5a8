"""`trecexam compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures

if TYPE_CHECKING:
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
