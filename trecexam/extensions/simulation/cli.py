"""`trecexam simulate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import trecexam
from trecexam.cli import bars
from trecexam.cli.lazy import SuggestingGroup
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.tables.result import Result

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=SuggestingGroup, epilog="Example: trecexam simulate runs mytrack")
def simulate() -> None:
    """Simulate how far automatic labels can be trusted to fill judgment holes.

    Drops official judgments and fills them with automatic labels. Other holes stay open, so only the labels
    make the difference. The map from labels to the official scale is fitted anew in each step, on the
    remaining judgments.
    """


def _options(command: F) -> F:
    """Options of both simulations."""
    for option in (
        click.option(
            "--by",
            multiple=True,
            metavar="WAY",
            help="Add columns for another method: learned (labels learned anew in each step), "
            "label:N (label N for "
            "all), label (each label above 0), condensed (lists without dropped passages). May be repeated.",
        ),
        click.option(
            "--official-measure",
            "measures",
            multiple=True,
            metavar="MEASURE",
            help="Use this measure on the official judgments; may be repeated [default: the track's].",
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
    help="Leave out all runs of a team at once; FILE has lines of `run<TAB>team`.",
)
@reading
def runs(
    track: Path,
    measures: tuple[str, ...],
    by: tuple[str, ...],
    teams: Path | None,
) -> Result:
    """Leave one run out: show TRACK's runs as if they had not been in the pool.

    For each run, drops the judgments of passages that no other run has, then fills them with automatic
    labels. Shows the run's rank and mean with all judgments, with holes, and with fill; and Kendall's tau of
    the whole leaderboard with that on all judgments. A rank is 1 plus the number of better runs. A second
    table, also in --json, shows how far ranks shift, one row per measure and method.
    """
    with (
        trecexam.open_track(track) as opened,
        bars.grading("encoding", "encoded", "texts") as encoding,
        bars.grading("simulating", "simulated", "steps") as progress,
    ):
        result: Result = opened.simulate.runs(
            measures or None,
            teams=teams,
            by=by,
            progress=bars.steps(progress),
            encoding=bars.steps(encoding),
        )
        return result


@simulate.command(
    short_help="Remove 10 to 90% of the judgments at random.",
    epilog="Example: trecexam simulate removal mytrack --repeats 50",
)
@_options
@click.option("--repeats", type=click.IntRange(min=1), default=10, show_default=True, help="Draw N times.")
@reading
def removal(
    track: Path,
    measures: tuple[str, ...],
    by: tuple[str, ...],
    repeats: int,
) -> Result:
    """Remove 10, 20 ... 90% of TRACK's official judgments at random.

    For each share, shows Kendall's tau of the leaderboard with that on all judgments, with holes and with
    fill: the mean over the repeats and the range of 95% of further repeats. Also shows tau_AP and the mean
    absolute difference of the runs' means. Judgments removed at 10% are removed at 20%, too.
    """
    with (
        trecexam.open_track(track) as opened,
        bars.grading("encoding", "encoded", "texts") as encoding,
        bars.grading("simulating", "simulated", "steps") as progress,
    ):
        result: Result = opened.simulate.removal(
            measures or None,
            repeats=repeats,
            by=by,
            progress=bars.steps(progress),
            encoding=bars.steps(encoding),
        )
        return result
