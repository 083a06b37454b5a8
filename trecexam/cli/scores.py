"""`trecexam leaderboard`, and messages about scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import click

from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError, rejected_notes
from trecexam.extension import label_sources
from trecexam.results.result import Result

if TYPE_CHECKING:
    from trecexam.track import Track


@click.command(epilog="Example: trecexam leaderboard mytrack -m 'Cover(rel=4)@20' -m nDCG@10")
@track_argument
@measure_option
@click.option("--official", is_flag=True, help="Use the official judgments instead of the grades.")
@click.option(
    "--labels",
    type=click.Choice(label_sources()[1:]),
    help="Show expected nDCG@10 and AP, with the labels of `trecexam learn` for missing judgments.",
)
@reading
def leaderboard(
    track: Track, measures: tuple[str, ...], official: bool, labels: Literal["learned"] | None
) -> Result:
    """Show runs of TRACK, best first, with standard errors.

    Uses existing grades; `trecexam watch` makes new ones. Runs are sorted by the first measure. Means are
    over all queries of the bank (with --official: of the official judgments), as with trec_eval -c.

    A track with several graders shows the first measures of each, as GRADER:MEASURE; -m takes these names,
    and --grader shows one grader's leaderboard. Each mean is over the queries of its grader.

    --official needs no bank and no passages.

    With --labels learned, AP counts the pool's depth, and Judged@10 is the judged share of the first ten
    passages. A note says so if the cross-validation of `trecexam learn` found a better order of the runs.

    On a terminal, the first three measures are shown, or all that -m names; a pipe gets all.
    """
    with bad_measures():
        board = track.leaderboard(measures or None, official=official, labels=labels)
    return board if board.rows else board.with_notes(*_without_runs(track, official=official))


def _without_runs(track: Track, *, official: bool) -> Iterator[str]:
    """Yield the reason why a leaderboard has no rows: no files, or only rejected files."""
    from trecexam.track import selection

    rows = selection(track).graded(bank_needed=False).not_taken if official else track.files.rejected()
    rejected = [row for row in rows if row.lost == "file"]
    yield f"{'no usable run' if rejected else 'no runs yet'}: drop some into {track.folder.runs}"
    yield from rejected_notes(rejected, 5)


@contextmanager
def bad_measures() -> Iterator[None]:
    """Turn a measure that cannot be computed into a one-line error."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise TrecexamError(str(error)) from None
