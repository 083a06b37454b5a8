"""`trecexam compare-graders`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option, measure_option, whole_track_argument
from trecexam.cli.scores import bad_measures
from trecexam.files import atomic as files
from trecexam.tables.table import to_json, to_tsv

if TYPE_CHECKING:
    from trecexam.features.compare_graders.compare import GraderComparison, GraderPairs


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
@json_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Instead of standard output, TSV or with --json JSON; replaced as a whole.",
)
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
    as_json: bool,
    output: Path | None,
) -> None:
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
    People's ratings are left out. A terminal is shown no intervals, models and prompts; -o and --json have
    them.
    """
    if between and by_item:
        raise click.UsageError("--between and --items are two tables; ask for one")
    if (between or by_item) and (measures or official_measures or min_relevant):
        raise click.UsageError(
            "--between and --items are about grades alone; they take no measures and no --min-relevant"
        )
    shown: GraderComparison | GraderPairs
    with trecexam.open_track(track) as opened, bad_measures():
        if between or by_item:
            shown = opened.compare_grader_pairs(
                graders, recorded=recorded, min_ratings=min_ratings, by_item=by_item
            )
        else:
            shown = opened.compare_graders(
                graders,
                recorded=recorded,
                measures=measures or None,
                official_measures=official_measures or None,
                min_ratings=min_ratings,
                min_relevant=min_relevant,
            )
    for line in shown.remarks:
        click.echo(line, err=True)
    if output is None:
        table = shown.short_table() if show.on_terminal() else shown.table()
        show.table(table, as_json=as_json, json_value=shown.as_json())
    else:
        files.replace(output, (to_json(shown.as_json()) if as_json else to_tsv(shown.table())).encode())
