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
    out_folder,
    refuse_for_matrix,
    settings_of,
)

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.settings import ModelName
    from trecexam.tables.result import Result

#: Of a track's outputs.
FOLDER = "exam"


@click.command(epilog="Example: trecexam exam fit matrix.tsv -o fitted --components components.tsv")
@model_options(FOLDER)
@writing
def fit(
    source: Path,
    out: Path | None,
    model: ModelName | None,
    components: Path | None,
    groups: Path | None,
    priors: bool,
    min_rating: int | None,
    depth: int | None,
    plots: bool,
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
    where = out_folder(out, source, track=track, what=FOLDER)
    settings = settings_of(model, track=track, priors=priors)
    if track:
        with trecexam.open_track(source) as opened:
            exam = opened.exam.fit(
                settings, components=components, groups=groups, min_rating=min_rating, depth=depth
            )
    else:
        refuse_for_matrix(min_rating, depth)
        exam = fitting.fitted(from_file(source, LabelFiles(components, groups)), settings)
    why = fitting.write_fit(exam, where, plots=plots)
    exam = replace(exam, notes=(*exam.notes, *why, f"written: {where}"))
    return exam, 0 if exam.fit.converged else 1
