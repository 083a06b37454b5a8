"""`trecexam exam fit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import json_option
from trecexam.extensions.exams.cli.options import (
    is_track,
    model_options,
    out_folder,
    refuse_for_matrix,
    settings_of,
)
from trecexam.tables.terminal import printable
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.exam import FittedExam
    from trecexam.extensions.exams.irt.settings import ModelName
    from trecexam.tables.table import Table

#: Of a track's outputs.
FOLDER = "exam"


@click.command(epilog="Example: trecexam exam fit matrix.tsv -o fitted --components components.tsv")
@model_options(FOLDER)
@json_option
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
    as_json: bool,
) -> int:
    """How able each examinee is, and how hard and discriminating each question, by item response theory.

    MATRIX is a TSV file with `examinee` and a column a question (1, 0, or empty), JSON Lines, or a folder of
    those, a file an examinee. Of a TRACK the runs are the examinees and the bank's items the questions: right
    where one of the first K passages has the rating.

    Prints the examinees, best first, with 95% intervals. DIR gets items.tsv, examinees.tsv, components.tsv,
    information.tsv, item_quality.tsv (worst first, and why), fit.json and plots/. Exit status 1: the fit did
    not converge.
    """
    from trecexam.extensions.exams import fitting
    from trecexam.extensions.exams import tables as exams
    from trecexam.extensions.exams.responses import LabelFiles, from_file

    track = is_track(source)
    where = out_folder(out, source, track=track, what=FOLDER)
    settings = settings_of(model, track=track, priors=priors)
    more: list[tuple[str, Table]] = []
    remark = None
    if track:
        from trecexam.extensions.exams.rubric import official_remark

        with trecexam.open_track(source) as opened:
            exam = opened.exam.fit(
                settings, components=components, groups=groups, min_rating=min_rating, depth=depth
            )
            show.human(opened)
            show.missing(opened.grading.counts(), opened.folder.root)
        fitted_exam, remark = exam.fitted, official_remark(exam)
        more = [
            ("matrix.tsv", exam.matrix()),
            *([("correlation.tsv", exam.correlations())] if exam.official else []),
        ]
    else:
        refuse_for_matrix(min_rating, depth)
        fitted_exam = fitting.fitted(from_file(source, LabelFiles(components, groups)), settings)
    why = fitting.write_fit(fitted_exam, where, plots=plots, more=more)
    say(fitted_exam, where, remark, why)
    show.table(
        exams.abilities_table(fitted_exam),
        as_json=as_json,
        json_value=exams.fit_json(fitted_exam) if as_json else None,
    )
    return 0 if fitted_exam.fit.converged else 1


def say(fitted_exam: FittedExam, where: Path, remark: str | None, why: list[str]) -> None:
    """What one must know of a fit, on stderr."""
    from trecexam.extensions.exams import tables as exams

    f = fitted_exam.fit
    for note in fitted_exam.notes:
        click.echo(printable(note), err=True)
    click.echo(
        f"{f.settings.model.upper()} of {len(f.theta):,} examinees x {len(f.a):,} questions: log-likelihood "
        f"{f.log_likelihood:.2f} after {f.iterations:,} iterations ({f.seconds:.1f} s); RMSE "
        f"{f.errors.model:.3f}, of the examinees' means {f.errors.baseline:.3f}",
        err=True,
    )
    click.echo(exams.information_line(fitted_exam), err=True)
    doubted = sum(bool(item.note) for item in fitted_exam.quality)
    click.echo(f"{plural(doubted, 'question')} doubted: see {where / 'item_quality.tsv'}", err=True)
    for line in (remark, *why):
        if line:
            click.echo(line, err=True)
