"""`trecexam simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.lazy import SuggestingGroup
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=SuggestingGroup, epilog="Example: trecexam simulate runs mytrack")
def simulate() -> None:
    """How far automatic labels can be trusted to fill judgment holes.

    Official judgments are dropped and filled with automatic labels. Only what was dropped is filled: holes
    that the official judgments have stay holes, so that the labels alone make the difference. What maps
    labels to the official scale is fitted anew in each step, on the judgments that remain.
    """


def _options(command: F) -> F:
    """What both simulations share."""
    for option in (
        click.option(
            "--by",
            multiple=True,
            metavar="WAY",
            help="Columns for another way: learned, labels learned anew in each step; label:N, the label N "
            "for all; label, each label above 0; condensed, lists without what was dropped. May be repeated.",
        ),
        click.option(
            "--official-measure",
            "measures",
            multiple=True,
            metavar="MEASURE",
            help="On the official judgments; may be repeated [default: the track's].",
        ),
        track_argument,
    ):
        command = option(command)
    return command


@simulate.command(
    short_help="Leave each run out of the pool.",
    epilog="Example: trecexam simulate runs mytrack --official-measure nDCG@10 --teams teams.tsv",
)
@_options
@click.option(
    "--teams",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Lines of `run<TAB>team`: what a whole team alone has is left out at once.",
)
@reading
def runs(
    track: Path,
    measures: tuple[str, ...],
    by: tuple[str, ...],
    teams: Path | None,
) -> Result:
    """Leave one run out: TRACK's runs as if they had not been in the pool.

    For each run, the judgments of passages that no other run has are dropped, then filled with automatic
    labels. Shows the run's rank and mean with all judgments, with holes, and with fill; and Kendall's tau of
    the whole leaderboard with that on all judgments. A rank is 1 and the number of runs that are better.
    Below, and in --json, is how far ranks shift, a row a measure and way.
    """
    with (
        trecexam.open_track(track) as opened,
        show.grading("encoding", "encoded", "texts") as encoding,
        show.grading("simulating", "simulated", "steps") as progress,
    ):
        found: Result = opened.simulate.runs(
            measures or None,
            teams=teams,
            by=by,
            progress=show.steps(progress),
            encoding=show.steps(encoding),
        )
        return found


@simulate.command(
    short_help="Remove 10 to 90% of the judgments at random.",
    epilog="Example: trecexam simulate removal mytrack --repeats 50",
)
@_options
@click.option(
    "--repeats", type=click.IntRange(min=1), default=10, show_default=True, help="How often to draw."
)
@reading
def removal(
    track: Path,
    measures: tuple[str, ...],
    by: tuple[str, ...],
    repeats: int,
) -> Result:
    """Remove 10, 20 ... 90% of TRACK's official judgments at random.

    For each share: Kendall's tau of the leaderboard with that on all judgments, with holes and with fill, as
    mean over the repeats and where 95% of further repeats lie; tau_AP; and the mean absolute difference of
    the runs' means. What is removed at 10% is removed at 20% too.
    """
    with (
        trecexam.open_track(track) as opened,
        show.grading("encoding", "encoded", "texts") as encoding,
        show.grading("simulating", "simulated", "steps") as progress,
    ):
        found: Result = opened.simulate.removal(
            measures or None,
            repeats=repeats,
            by=by,
            progress=show.steps(progress),
            encoding=show.steps(encoding),
        )
        return found
