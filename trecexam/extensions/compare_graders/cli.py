"""`trecexam compare-graders`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.options import measure_option, whole_track_argument
from trecexam.cli.reading import reading
from trecexam.cli.scores import bad_measures

if TYPE_CHECKING:
    from trecexam.tables.result import Result


@click.command(
    epilog="Example: trecexam compare-graders mytrack --grader mytrack/trecexam.toml --grader umbrela.toml "
    "--recorded graded.jsonl.gz -o graders.tsv"
)
@whole_track_argument
@click.option(
    "--grader",
    "graders",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="NAME",
    help="A grader of TRACK, or a file with a [grader], as trecexam.toml, of which that alone counts. May be "
    "repeated [default: TRACK's, as far as they ask the same of the same texts].",
)
@click.option(
    "--recorded",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Grades that exist already; of each model and prompt in it comes a grader. May be repeated.",
)
@measure_option
@click.option(
    "--official-measure",
    "official_measures",
    multiple=True,
    metavar="MEASURE",
    help="On the official judgments; may be repeated. `official_leaderboard` is the official ranking.",
)
@click.option(
    "--min-rating",
    "min_ratings",
    type=click.IntRange(1, 5),
    multiple=True,
    metavar="N",
    help="Only at this rating as threshold; may be repeated [default: all of each grader's scale].",
)
@click.option(
    "--min-relevant",
    type=click.IntRange(min=1),
    metavar="N",
    help="From this official label on, a passage is relevant, for kappa [default: the row's min_rating where "
    "the scales are the same, else the track's, 1].",
)
@click.option("--between", is_flag=True, help="Agreement of every two graders with each other instead.")
@click.option("--items", "by_item", is_flag=True, help="The same item by item.")
@reading
def compare_graders(
    track: Path,
    graders: tuple[Path, ...],
    recorded: tuple[Path, ...],
    measures: tuple[str, ...],
    official_measures: tuple[str, ...],
    min_ratings: tuple[int, ...],
    min_relevant: int | None,
    between: bool,
    by_item: bool,
) -> Result:
    """Several graders or prompts on TRACK by thresholds, against the official leaderboard and judgments.

    Kendall's tau-b and Spearman's rho of each grader's leaderboard with the official one, for each measure
    and min_rating, with 95% intervals over queries; and Cohen's kappa of its labels with the official
    judgments at that min_rating. Without --grader and --recorded it is the track's own graders by their
    thresholds: of several those that ask the same of the same texts as the first does.

    --between: kappa of every two graders with each other, over labels and over the ratings of all items that
    both have; without min_rating as they are, with it whether they reach it. --items: the ratings item by
    item.

    Grades are read from TRACK's store or from recordings. None is made, and none is stored: `trecexam watch`
    with a grader's settings in trecexam.toml grades, and grades of others stay. How many are missing is said.
    People's ratings are left out.
    """
    with trecexam.open_track(track) as opened, bad_measures():
        if between or by_item:
            pairs: Result = opened.compare_graders.pairs(
                graders, recorded=recorded, min_ratings=min_ratings, by_item=by_item
            )
            return pairs
        found: Result = opened.compare_graders(
            graders,
            recorded=recorded,
            measures=measures or None,
            official_measures=official_measures or None,
            min_ratings=min_ratings,
            min_relevant=min_relevant,
        )
        return found
