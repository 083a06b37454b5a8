"""`trecexam exam fit` and `trecexam exam improve`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trecexam.cli import bars
from trecexam.cli.options import grader_option, open_chosen, refuse_nan
from trecexam.cli.reading import writing
from trecexam.extensions.exams.irt.settings import ModelName, Settings
from trecexam.results.text import LOST, Note

if TYPE_CHECKING:
    from trecexam.results.result import Result

Command = TypeVar("Command", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
#: The folder below a track's outputs.
FITTED, IMPROVED = "exam", "exam-improved"


def _model_options(folder: str) -> Callable[[Command], Command]:
    """Add the options of the model to fit; `folder` is the default folder below a track's outputs."""
    options = (
        click.argument("source", type=click.Path(path_type=Path, exists=True), metavar="MATRIX|TRACK"),
        grader_option,
        click.option(
            "-o",
            "--out",
            type=click.Path(path_type=Path, file_okay=False),
            metavar="DIR",
            help=f"Write into this folder. Required for a MATRIX [default for a TRACK: its out/{folder}].",
        ),
        click.option(
            "--model",
            type=click.Choice(["1pl", "2pl", "3pl"]),
            help="Fit this model. 1pl: difficulty; 2pl: and discrimination; 3pl: and guessing "
            "[default: 3pl; for a "
            "TRACK, whose items cannot be guessed, 2pl].",
        ),
        click.option(
            "--components",
            type=_FILE,
            metavar="FILE",
            help="Fit abilities as sums over components: TSV with `examinee` and one column per "
            "component (llm, "
            "retriever ...).",
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
    help="Show information by group: TSV with `item` and one column per grouping (Bloom level ...); "
    "separate several groups with |.",
)
@click.option(
    "--no-priors",
    is_flag=True,
    help="Fit the published objective, without the weak priors: normal on abilities and difficulties, "
    "log-normal on discrimination, beta on guessing.",
)
@writing
def fit(
    source: Path,
    grader: str | None,
    out: Path | None,
    model: ModelName | None,
    components: Path | None,
    groups: Path | None,
    no_priors: bool,
) -> tuple[Result, int]:
    """Fit an item response model: ability of each examinee, difficulty of each question.

    MATRIX is a TSV file with `examinee` and one column per question (1, 0 or empty), JSON Lines, or a folder
    of those, one per examinee. With TRACK, runs are the examinees and items the questions: right if one of
    the first K passages has the rating.

    Prints the examinees, best first, with 95% intervals. DIR gets items.tsv, examinees.tsv, components.tsv,
    information.tsv, item_quality.tsv (least discriminating first), fit.json and plots/. Exit status 1:
    the fit did not converge.
    """
    from trecexam.extensions.exams import fitting

    inputs = source, components, groups
    labels = {"components": components, "groups": groups}
    if _is_track(source):
        with open_chosen(source, grader) as opened:
            out = out or opened.exam.out / FITTED
            fitting.refuse_out(out, inputs)
            exam = opened.exam.fit(Settings.of(model or "2pl", priors=not no_priors), **labels)
    else:
        out = _named(out)
        fitting.refuse_out(out, inputs)
        exam = fitting.fit_exam(source, Settings.of(model or "3pl", priors=not no_priors), **labels)
    why = fitting.write_fit(exam, out)
    exam = replace(exam, notes=(*exam.notes, *why, Note(f"written: {out}", LOST)))
    return exam, 0 if exam.fit.converged else 1


@click.command(epilog="Example: trecexam exam improve matrix.tsv -o improved --steps 5 --drop 0.1")
@_model_options(IMPROVED)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    metavar="N",
    help="Do at most N steps.",
)
@click.option(
    "--drop",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    callback=refuse_nan,
    default=0.1,
    show_default=True,
    metavar="SHARE",
    help="Drop this share of the remaining questions at each step.",
)
@writing
def improve(
    source: Path,
    grader: str | None,
    out: Path | None,
    model: ModelName | None,
    components: Path | None,
    steps: int,
    drop: float,
) -> tuple[Result, int]:
    """Drop the least discriminating questions step by step, and fit again after each step.

    Step 0 is the whole exam. Questions that all or none got right go first, then those with the lowest
    discrimination; ties are broken by information at the examinees' abilities.

    DIR gets a folder per step in the form of `exam fit`, steps.tsv (which is printed) and the information
    curve of every step. Exit status 1: a fit did not converge.
    """
    from trecexam.extensions.exams import fitting

    options: dict[str, Any] = {"components": components, "steps": steps, "drop": drop}
    with bars.progress("improving", "fits") as progress:
        options["progress"] = bars.steps(progress)
        if _is_track(source):
            with open_chosen(source, grader) as opened:
                out = out or opened.exam.out / IMPROVED
                fitting.refuse_out(out, (source, components), improvement=True)
                improved = opened.exam.improve(Settings.of(model or "2pl", priors=True), **options)
        else:
            out = _named(out)
            fitting.refuse_out(out, (source, components), improvement=True)
            improved = fitting.improve_exam(source, Settings.of(model or "3pl", priors=True), **options)
    why = fitting.write_improvement(improved, out)
    improved = replace(improved, notes=(*improved.notes, *why, Note(f"written: {out}", LOST)))
    return improved, 0 if all(step.fit.converged for step in improved.fits) else 1


def _is_track(source: Path) -> bool:
    """Return True if this is a track's folder, not one of response files."""
    from trecexam.config import CONFIG_NAME

    return (source / CONFIG_NAME).is_file()


def _named(out: Path | None) -> Path:
    """Return the folder for files of a fit without a track."""
    if out is None:
        raise click.UsageError("give a folder for the files: -o DIR")
    return out
