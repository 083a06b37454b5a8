"""`trecexam compare-graders`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import whole_track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(
    epilog="Example: trecexam compare-graders mytrack --grader rubric --recorded graded.jsonl.gz "
    "-o graders.tsv"
)
@whole_track_argument
@click.option(
    "--grader",
    "graders",
    multiple=True,
    metavar="NAME",
    help="Compare the grader of this name; may be repeated [default: TRACK's, as far as they ask the same of "
    "the same texts].",
)
@click.option(
    "--recorded",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Grades that exist already; of each model and prompt in it comes a grader. May be repeated.",
)
@reading
def compare_graders(track: Path, graders: tuple[str, ...], recorded: tuple[Path, ...]) -> Result:
    """Several graders or prompts on TRACK by thresholds, against the official side and with each other.

    Kendall's tau-b and Spearman's rho of each grader's leaderboard with the official one, for each measure
    of [scores] and min_rating, with 95% intervals over queries; and Cohen's kappa of its labels with the
    official judgments at that min_rating. Without --grader and --recorded it is the track's own graders by
    their thresholds: of several those that ask the same of the same texts as the first does.

    Then kappa of every two graders with each other, over labels and over the ratings of all items that both
    have; without min_rating as they are, with it whether they reach it. --json has it item by item, too. A
    pipe is given the first table; without an official side that is the second.

    Two models or two prompts are two sections [graders.NAME] of trecexam.toml. Grades are read from TRACK's
    store or from recordings. None is made, and none is stored: `trecexam watch` grades. How many are missing
    is said.
    People's ratings are left out.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        found: Result = opened.compare_graders(graders, recorded=recorded)
        return found
