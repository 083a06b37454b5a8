"""`trecexam leaderboard`, `overall` and `evaluate`: scores of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.chosen import chosen_grader
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam leaderboard mytrack -m 'Cover(rel=4)@20' -m nDCG@10")
@track_argument
@measure_option
@click.option("--official", is_flag=True, help="On the official judgments instead of the grades.")
@reading
def leaderboard(track: Path, measures: tuple[str, ...], official: bool) -> Result:
    """Runs of TRACK, best first by the first measure, with standard errors.

    Uses the grades that are there; `trecexam watch` makes them. Means are over all queries of the bank (with
    --official: of the official judgments), as trec_eval -c.

    Of a track with several graders a row has the first measures of each, as NAME:MEASURE with the grader's
    name, and -m takes measures of that form; a pipe is given all measures of all. Each mean is over the
    queries of its grader. --grader shows the leaderboard of one.

    A terminal is shown the first three measures, or all that -m names, below each other where they have no
    room side by side. `trecexam compare` says which runs differ significantly.
    """
    # Not by `trecexam.open_track`: most of what that imports, a tenth of this command's time, is other
    # commands'. Behind these is numpy, which --help must not wait for.
    from trecexam.features.leaderboard.joint import joint_leaderboard
    from trecexam.line.diagnostics import grades_notes
    from trecexam.line.evaluation import leaderboard as leaderboard_of
    from trecexam.line.loaded_track import TrackLoaders
    from trecexam.track import TrackFolder

    with TrackLoaders(TrackFolder.open(track)) as loaders, bad_measures():
        chosen = chosen_grader.get()
        if chosen is None and len(loaders) > 1:
            board: Leaderboard = joint_leaderboard(loaders.load(), measures or None, official=official)
        else:
            loaded = (loaders.first if chosen is None else loaders[chosen]).load()
            board = leaderboard_of(loaded, measures or None, official=official)
            if not official:
                board = board.noted(*grades_notes(loaded))
        if not board.rows:
            board = board.noted(f"no runs yet: drop some into {loaders.folder.runs}")
    return board


@click.command(epilog="Example: trecexam overall mytrack -m 'Cover(rel=4)@20'")
@track_argument
@measure_option
@reading
def overall(track: Path, measures: tuple[str, ...]) -> Result:
    """The leaderboard of TRACK beside what all runs reach together, and the official ranks.

    _overall_ is what all pooled passages reach together, whatever the measure's cutoff; only Cover and nCover
    have it. The last column is the official rank, where TRACK has an official leaderboard.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        return opened.overall(measures or None)


@click.command(
    epilog="Example: trecexam evaluate mytrack/out/rubric.subtopics.qrels my.run -m 'Cover(rel=1)@20'"
)
@click.argument("qrels", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="QRELS")
@click.argument(
    "runs",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    nargs=-1,
    required=True,
    metavar="RUN...",
)
@measure_option
@click.option("--per-query", is_flag=True, help="One row a run, query and measure, instead of means.")
@reading
def evaluate(qrels: Path, runs: tuple[Path, ...], measures: tuple[str, ...], per_query: bool) -> Result:
    """Run files on a qrels file, as the `ir_measures` command does it, with Cover; no track is needed.

    Cover and nCover need qrels whose second column is the item, with every item of a query:
    out/rubric.subtopics.qrels of a track, with rel=1, or `trecexam export subtopics --min-rating N`. Where a
    passage stands several times for a query, measures that know no items take its best label. Means are over
    all queries of QRELS, as trec_eval -c.

    Nothing is graded here. `trecexam.evaluate` of Python is another thing: it grades runs by a test bank.
    """
    if not measures:
        raise click.UsageError("which measures? Name at least one with -m, as -m nDCG@10")
    from trecexam.features.leaderboard.files import evaluate_files

    return evaluate_files(qrels, runs, measures, per_query=per_query)


class bad_measures:  # noqa: N801 - reads as a block, not as a class
    """Turns a measure that cannot be computed into a one-line error."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if type(error) is ValueError:
            raise TrecexamError(str(error)) from None
