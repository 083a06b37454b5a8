"""`trecexam exam fit`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli.reading import writing
from trecexam.extensions.exams.cli.options import (
    is_track,
    model_options,
    named_folder,
    settings_of,
)

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.settings import ModelName
    from trecexam.tables.result import Result

#: Of a track's outputs.
FOLDER = "exam"


@click.command(epilog="Example: trecexam exam fit matrix.tsv -o fitted --components components.tsv")
@model_options(FOLDER)
@click.option(
    "--groups",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="TSV with `item` and a column a grouping (Bloom level ...), several groups set off by "
    "|: information by group.",
)
@click.option(
    "--no-priors",
    is_flag=True,
    help="The published objective, without weak priors: normal on abilities and difficulties, log-normal on "
    "discrimination, beta on guessing.",
)
@writing
def fit(
    source: Path,
    out: Path | None,
    model: ModelName | None,
    components: Path | None,
    groups: Path | None,
    no_priors: bool,
) -> tuple[Result, int]:
    """How able each examinee is, and how hard and discriminating each question, by item response theory.

    MATRIX is a TSV file with `examinee` and a column a question (1, 0, or empty), JSON Lines, or a folder of
    those, a file an examinee. Of a TRACK the runs are the examinees and the bank's items the questions: right
    where one of the first K passages has the rating.

    Prints the examinees, best first, with 95% intervals. DIR gets items.tsv, examinees.tsv, components.tsv,
    information.tsv, item_quality.tsv (worst first, and why), fit.json and plots/. Exit status 1: the fit did
    not converge.
    """
    from trecexam.extensions.exams import fitting
    from trecexam.extensions.exams.responses import LabelFiles, from_file

    track = is_track(source)
    settings = settings_of(model, track=track, priors=not no_priors)
    if track:
        with trecexam.open_track(source) as opened:
            exam = opened.exam.fit(settings, components=components, groups=groups)
            where = out or opened.exam.out / FOLDER
    else:
        where = named_folder(out)
        exam = fitting.fitted(from_file(source, LabelFiles(components, groups)), settings)
    why = fitting.write_fit(exam, where)
    exam = replace(exam, notes=(*exam.notes, *why, f"written: {where}"))
    return exam, 0 if exam.fit.converged else 1
