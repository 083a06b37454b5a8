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
    from trecexam.results.result import Result


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
    help="Compare this grader; may be repeated [default: TRACK's graders of the same items and texts].",
)
@click.option(
    "--recorded",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Compare recorded grades: each model and prompt in FILE is a grader. May be repeated; TRACK's own "
    "grader is compared, too, unless --grader names others.",
)
@reading
def compare_graders(track: Path, graders: tuple[str, ...], recorded: tuple[Path, ...]) -> Result:
    """Compare graders or prompts on TRACK, with the official side and with each other.

    The first table has, for each grader, measure and min_rating: Kendall's tau-b and Spearman's rho with the
    official leaderboard, with 95% intervals over queries, and Cohen's kappa of labels with official
    judgments. The second has kappa of every two graders, of labels and of ratings. A pipe gets the first
    table, without an official side the second.

    By default, compares TRACK's graders that grade the same items and texts as the first. Declare two models
    or prompts as two sections [graders.NAME] of trecexam.toml. Uses existing grades and recordings, and
    names how many are missing. People's ratings are left out.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        return opened.compare_graders(graders, recorded=recorded)
