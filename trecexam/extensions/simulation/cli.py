"""`trecexam simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trecexam.cli import bars
from trecexam.cli.options import track_argument
from trecexam.cli.reading import reading

if TYPE_CHECKING:
    from trecexam.results.result import Result
    from trecexam.track import Track


@click.command(epilog="Example: trecexam simulate mytrack --official-measure nDCG@10 --teams teams.tsv")
@track_argument
@click.option(
    "--teams",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Leave out all runs of a team at once; FILE has lines of `run<TAB>team`.",
)
@click.option("--judgments", is_flag=True, help="Remove 10, 20 ... 90% of the judgments at random instead.")
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="With --judgments: draw N times.",
)
@click.option(
    "--official-measure",
    "measures",
    multiple=True,
    metavar="MEASURE",
    help="Use this measure on the official judgments; may be repeated [default: the track's].",
)
@click.option(
    "--by",
    multiple=True,
    metavar="WAY",
    help="Add columns for another method: learned (labels learned anew in each step), label:N (label N for "
    "all), label (each label above 0), condensed (lists without dropped passages). May be repeated.",
)
@reading
def simulate(
    track: Track,
    teams: Path | None,
    judgments: bool,
    repeats: int,
    measures: tuple[str, ...],
    by: tuple[str, ...],
) -> Result:
    """Simulate how far TRACK's automatic labels can be trusted to fill judgment holes.

    For each run, drops the judgments of passages that no other run has, then fills them with automatic
    labels. Shows the run's rank and mean with all judgments, with holes, and with fill; and Kendall's tau of
    the whole leaderboard with that on all judgments. A second table, also in --json, shows how ranks shift.

    With --judgments, removes judgments at random. For each share, shows tau with holes and with fill (mean
    and range of 95% of further repeats), tau_AP, and the mean absolute difference of the runs' means.

    The map from labels to the official scale is fitted anew in each step, on the remaining judgments.
    """
    if judgments and teams is not None:
        raise click.UsageError("give --teams or --judgments, not both")
    with bars.progress("simulating", "steps") as progress:
        return track.simulate(
            measures or None, teams=teams, judgments=judgments, repeats=repeats, by=by, progress=progress
        )
