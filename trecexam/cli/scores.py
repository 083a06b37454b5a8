"""`trecexam leaderboard`, `overall` and `evaluate`: scores of runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    from trecexam.api import Track
    from trecexam.tables.result import Result


@click.command(epilog="Example: trecexam leaderboard mytrack -m 'Cover(rel=4)@20' -m nDCG@10")
@track_argument
@measure_option
@click.option(
    "--with",
    "others",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    multiple=True,
    metavar="TRACK",
    help="Also the measures of this track on runs of the same names, and Kendall's tau; may be repeated.",
)
@click.option("--official", is_flag=True, help="On the official judgments instead of the grades.")
@reading
def leaderboard(track: Path, measures: tuple[str, ...], others: tuple[Path, ...], official: bool) -> Result:
    """Runs of TRACK, best first by the first measure, with standard errors.

    Uses the grades that are there; `trecexam watch` makes them. Means are over all queries of the bank (with
    --official: of the official judgments), as trec_eval -c.

    --with: several graders of the same runs side by side, as nuggets of whole responses and relevance of what
    was retrieved (see `trecexam init --inputs-of`). The other track's measures are NAME:MEASURE, with its
    folder's name; they are those of its settings, and -m is about TRACK's own.

    A terminal is shown the first three measures, or all that -m names, below each other where they have no
    room side by side. `trecexam compare` says which runs differ significantly.
    """
    # Not by `trecexam.open_track`: most of what that imports, a tenth of this command's time, is other
    # commands'. Behind these is numpy, which --help must not wait for.
    from trecexam.features.leaderboard.joined import JoinedLeaderboards, names_of_tracks
    from trecexam.line.diagnostics import grades_notes
    from trecexam.line.evaluation import leaderboard as leaderboard_of
    from trecexam.line.loader import opened

    with opened(track) as loader, bad_measures():
        loaded = loader.load()
        board = leaderboard_of(loaded, measures or None, official=official)
        if not official:
            board = board.noted(*grades_notes(loaded))
    if not board.rows:
        board = replace(board, notes=(*board.notes, f"no runs yet: drop some into {loaded.folder.runs}"))
    boards = {}
    for name, folder in names_of_tracks(others).items():
        with opened(folder) as loader:
            boards[name] = leaderboard_of(loader.load())
    return JoinedLeaderboards(board, boards).with_notes() if boards else board


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
        return opened.overall_leaderboard(measures or None)


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


def say_what_is_missing(track: Track) -> None:
    """Says what people rated, which cells have no grade and which passages no text."""
    show.human(track)
    show.missing(track.counts(), track.folder.root)


class bad_measures:  # noqa: N801 - reads as a block, not as a class
    """Turns a measure that cannot be computed into a one-line error."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if type(error) is ValueError:
            raise TrecexamError(str(error)) from None
