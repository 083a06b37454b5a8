"""`trecexam leaderboard`, and what commands say of scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

import trecexam
from trecexam.chosen import chosen_grader
from trecexam.cli.options import measure_option, track_argument
from trecexam.cli.reading import reading
from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.scores.leaderboard import Leaderboard
    from trecexam.tables.result import Result
    from trecexam.track import TrackFolder


@click.command(epilog="Example: trecexam leaderboard mytrack -m 'Cover(rel=4)@20' -m nDCG@10")
@track_argument
@measure_option
@click.option("--official", is_flag=True, help="Use the official judgments instead of the grades.")
@click.option(
    "--labels",
    type=click.Choice(["learned"]),
    help="Show expected nDCG@10 and AP, with the labels of `trecexam learn` for missing judgments.",
)
@reading
def leaderboard(
    track: Path, measures: tuple[str, ...], official: bool, labels: Literal["learned"] | None
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
    if labels is not None:
        with trecexam.open_track(track) as opened:
            return opened.leaderboard(measures or None, official=official, labels=labels)
    # Not by `trecexam.open_track`: most of what that imports, a tenth of this command's time, is other
    # commands'. Imports numpy, which --help must not load.
    from trecexam.features.leaderboard.joint import joint_leaderboard
    from trecexam.line.diagnostics import grades_notes
    from trecexam.line.evaluation import leaderboard as leaderboard_of
    from trecexam.line.loaded_track import TrackLoaders
    from trecexam.track import TrackFolder

    with TrackLoaders(TrackFolder.open(track)) as loaders, bad_measures():
        chosen = chosen_grader.get()
        if official:
            loaded = loaders.load_judged(chosen)
            of_each: Mapping[str, Assessment] = {loaded.name: loaded}
            board: Leaderboard = leaderboard_of(loaded, measures or None, official=True)
        elif chosen is None and len(loaders) > 1:
            track_now = loaders.load()
            of_each = track_now.assessments
            board = joint_leaderboard(track_now, measures or None)
        else:
            loaded = (loaders.first if chosen is None else loaders[chosen]).load()
            of_each = {loaded.name: loaded}
            board = leaderboard_of(loaded, measures or None).with_notes(*grades_notes(loaded))
        if not board.rows:
            board = board.with_notes(*_without_runs(loaders.folder, of_each))
    return board


def _without_runs(folder: TrackFolder, of_each: Mapping[str, Assessment]) -> Iterator[str]:
    """Why a leaderboard has no rows: there are no files, or each was rejected."""
    from trecexam.line.rejected import joint_rejected, rejected_notes

    files = {name: [row for row in each.not_taken if row.lost == "file"] for name, each in of_each.items()}
    rejected = joint_rejected(folder, files) if len(files) > 1 else next(iter(files.values()))
    yield f"{'no usable run' if rejected else 'no runs yet'}: drop some into {folder.runs}"
    yield from rejected_notes(rejected, 5)


class bad_measures:  # noqa: N801 - reads as a block, not as a class
    """Turns a measure that cannot be computed into a one-line error."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if type(error) is ValueError:
            raise TrecexamError(str(error)) from None
