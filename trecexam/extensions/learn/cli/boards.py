"""`trecexam learned-leaderboard`, `learned-correlate` and `cross-validate`: what learned labels say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.closer import official_measure_option
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures
from trecexam.extensions.learn.cli.learn import source_option

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam learned-leaderboard mytrack")
@track_argument
@click.option(
    "--these-queries", is_flag=True, help="Treat queries as fixed: intervals cover label uncertainty only."
)
@reading
def learned_leaderboard(track: Path, these_queries: bool) -> Result:
    """Expected nDCG@10 and AP of TRACK's runs, where labels learned from judgments stand for missing ones.

    Scores are means over draws of what people would say of unjudged passages; .low and .high are 95%
    intervals, which hold what is uncertain in the labels and the queries. AP is down to the pool's depth,
    Judged@10 the share of a run's first ten passages that people judged. Nothing is written.
    """
    with trecexam.open_track(track) as opened, show.grading("encoding", "encoded", "passages") as encoding:
        board: Result = opened.learn.leaderboard(these_queries=these_queries, progress=show.steps(encoding))
    return board


@click.command(epilog="Example: trecexam learned-correlate mytrack --official-measure official_leaderboard")
@track_argument
@official_measure_option
@reading
def learned_correlate(track: Path, official_measures: tuple[str, ...]) -> Result:
    """How far the leaderboard of `trecexam learned-leaderboard` agrees with the official one.

    Intervals hold what is uncertain in its labels, too. It is learned from the official judgments, so only an
    official leaderboard tests it.
    """
    with (
        trecexam.open_track(track) as opened,
        bad_measures(),
        show.grading("encoding", "encoded", "passages") as encoding,
    ):
        result: Result = opened.learn.correlate(official_measures or None, progress=show.steps(encoding))
    return result


@click.command(epilog="Example: trecexam cross-validate mytrack --known 0.2 --top 3")
@track_argument
@source_option
@click.option(
    "--known",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    multiple=True,
    metavar="SHARE",
    help="The share of judgments known, at random; may be repeated  [default: 0.1, 0.5].",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="K",
    help="The most retrieved judged passages known of each query; may be repeated  [default: 5, 10].",
)
@click.option(
    "--teams",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="run<TAB>team lines; a team is left out as a whole.",
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Draws of a share, and of half of the teams.",
)
@reading
def cross_validate(
    track: Path,
    source: Path | None,
    known: tuple[float, ...],
    top: tuple[int, ...],
    teams: Path | None,
    repeats: int,
) -> Result:
    """How good `trecexam learn` is on judgments of TRACK that are hidden from it, beside plain rules.

    Writes nothing, but keeps for `trecexam fill` which way to fill holes is the best.
    """
    with (
        trecexam.open_track(track) as opened,
        show.grading("encoding", "encoded", "passages") as encoding,
        show.grading("validating", "done", "fits") as fitting,
    ):
        validation: Result = opened.learn.cross_validate(
            known=known or None,
            top=top or None,
            teams=teams,
            source=source,
            repeats=repeats,
            progress=show.steps(encoding),
            steps=show.steps(fitting),
        )
    return validation
