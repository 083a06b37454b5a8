"""`trecexam exam improve`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.reading import writing
from trecexam.extensions.exams.cli.options import (
    is_track,
    model_options,
    named_folder,
    settings_of,
)

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.improvement import ImprovementStep
    from trecexam.extensions.exams.irt.settings import ModelName
    from trecexam.tables.result import Result

#: Of a track's outputs.
FOLDER = "exam-improved"


@click.command(epilog="Example: trecexam exam improve matrix.tsv -o improved --steps 5 --drop 0.1")
@model_options(FOLDER)
@click.option(
    "--steps", type=click.IntRange(min=1), default=5, show_default=True, metavar="N", help="How often."
)
@click.option(
    "--drop",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Of the questions that are left, this share goes at each step: 0.1 is a tenth.",
)
@writing
def improve(
    source: Path,
    out: Path | None,
    model: ModelName | None,
    components: Path | None,
    steps: int,
    drop: float,
) -> tuple[Result, int]:
    """Drop the questions that tell examinees apart least, fit again on what is left, and so on.

    Step 0 is the whole exam. First go the questions that everyone or no one got right, then those with the
    least a; where several have it, those with the least information at the examinees' abilities.

    DIR gets a folder for each step, as of `exam fit`, steps.tsv, which is printed, improve.json and the
    information curve of every step. Exit status 1: a fit did not converge.
    """
    from trecexam.extensions.exams import fitting

    track = is_track(source)
    settings = settings_of(model, track=track)

    def progress(step: ImprovementStep) -> None:
        show.log(f"{len(step.items):,} questions: an item's mean information {step.information:.4f}")

    if track:
        with trecexam.open_track(source) as opened:
            improved = opened.exam.improve(
                settings,
                components=components,
                steps=steps,
                drop=drop,
                progress=progress,
            )
            where = out or opened.exam.out / FOLDER
    else:
        where = named_folder(out)
        improved = fitting.improve_exam(
            source,
            settings,
            components=components,
            steps=steps,
            drop=drop,
            progress=progress,
        )
    why = fitting.write_improvement(improved, where)
    improved = replace(improved, notes=(*improved.notes, *why, f"written: {where}"))
    return improved, 0 if all(step.fit.converged for step in improved.fits) else 1
