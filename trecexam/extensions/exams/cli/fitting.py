"""`trecexam exam fit` and `trecexam exam improve`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import trecexam
from trecexam.cli import show
from trecexam.cli.options import grader_option
from trecexam.cli.reading import writing
from trecexam.extensions.exams.irt.settings import Settings

if TYPE_CHECKING:
    from trecexam.extensions.exams.irt.improvement import ImprovementStep
    from trecexam.extensions.exams.irt.settings import ModelName
    from trecexam.tables.result import Result

Command = TypeVar("Command", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
#: Of a track's outputs.
FITTED, IMPROVED = "exam", "exam-improved"


def _model_options(folder: str) -> Callable[[Command], Command]:
    """What is fitted, to what, and how; `folder` of a track's outputs is where files go unless it is said."""
    options = (
        click.argument("source", type=click.Path(path_type=Path, exists=True), metavar="MATRIX|TRACK"),
        grader_option,
        click.option(
            "-o",
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help=f"Where the files go. Needed for a MATRIX [default for a TRACK: its out/{folder}].",
        ),
        click.option(
            "--model",
            type=click.Choice(["1pl", "2pl", "3pl"]),
            help="1pl: difficulty; 2pl: and discrimination; 3pl: and guessing "
            "[default: 3pl; for a TRACK, whose items cannot be guessed, 2pl].",
        ),
        click.option(
            "--components",
            type=_FILE,
            metavar="FILE",
            help="TSV with `examinee` and a column a component (llm, retriever ...): an ability is the "
            "sum of its components'.",
        ),
    )

    def with_options(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


@click.command(epilog="Example: trecexam exam fit matrix.tsv -o fitted --components components.tsv")
@_model_options(FITTED)
@click.option(
    "--groups",
    type=_FILE,
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

    labels = {"components": components, "groups": groups}
    if _is_track(source):
        with trecexam.open_track(source) as opened:
            exam = opened.exam.fit(Settings.of(model or "2pl", priors=not no_priors), **labels)
            out = out or opened.exam.out / FITTED
    else:
        out = _named(out)
        exam = fitting.fit_exam(source, Settings.of(model or "3pl", priors=not no_priors), **labels)
    why = fitting.write_fit(exam, out)
    exam = replace(exam, notes=(*exam.notes, *why, f"written: {out}"))
    return exam, 0 if exam.fit.converged else 1


@click.command(epilog="Example: trecexam exam improve matrix.tsv -o improved --steps 5 --drop 0.1")
@_model_options(IMPROVED)
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
    source: Path, out: Path | None, model: ModelName | None, components: Path | None, steps: int, drop: float
) -> tuple[Result, int]:
    """Drop the questions that tell examinees apart least, fit again on what is left, and so on.

    Step 0 is the whole exam. First go the questions that everyone or no one got right, then those with the
    least a; where several have it, those with the least information at the examinees' abilities.

    DIR gets a folder for each step, as of `exam fit`, steps.tsv, which is printed, improve.json and the
    information curve of every step. Exit status 1: a fit did not converge.
    """
    from trecexam.extensions.exams import fitting

    def progress(step: ImprovementStep) -> None:
        show.log(f"{len(step.items):,} questions: an item's mean information {step.information:.4f}")

    asked: dict[str, Any] = {
        "components": components, "steps": steps, "drop": drop, "progress": progress
    }  # fmt: skip
    if _is_track(source):
        with trecexam.open_track(source) as opened:
            improved = opened.exam.improve(Settings.of(model or "2pl", priors=True), **asked)
            out = out or opened.exam.out / IMPROVED
    else:
        out = _named(out)
        improved = fitting.improve_exam(source, Settings.of(model or "3pl", priors=True), **asked)
    why = fitting.write_improvement(improved, out)
    improved = replace(improved, notes=(*improved.notes, *why, f"written: {out}"))
    return improved, 0 if all(step.fit.converged for step in improved.fits) else 1


def _is_track(source: Path) -> bool:
    """Whether this is a track's folder, not one of response files."""
    from trecexam.config import CONFIG_NAME

    return (source / CONFIG_NAME).is_file()


def _named(out: Path | None) -> Path:
    """Where the files of a fit go that is of no track.

    Raises:
        click.UsageError: it is not said.
    """
    if out is None:
        raise click.UsageError("a folder for the files is needed: -o DIR")
    return out
