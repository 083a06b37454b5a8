"""Fit and improvement of exams from files and tracks, and their output files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.irt.fitting import fit
from trecexam.extensions.exams.irt.improvement import improve
from trecexam.extensions.exams.irt.settings import Settings
from trecexam.extensions.exams.plots import abilities_plot, curves_plot, information_plot, steps_plot
from trecexam.extensions.exams.responses import Exam, from_file
from trecexam.extensions.exams.results import ExamFit, ImprovedExam
from trecexam.files.atomic import replace_all
from trecexam.inputs.protected import refuse_folder
from trecexam.results.plots.canvas import drawn
from trecexam.results.table import to_json, to_tsv
from trecexam.results.text import CHANGES, Note, plural

_PLOTS = ("plots/*.svg", "plots/*.tsv")
#: Files that `write_fit` always writes, and optional files.
_ALWAYS_OF_FIT = ("items.tsv", "examinees.tsv", "information.tsv", "item_quality.tsv", "fit.json")
_OF_FIT = (*_ALWAYS_OF_FIT, "components.tsv", "correlation.tsv", *_PLOTS)
#: Files that `write_improvement` always writes, and optional files.
_ALWAYS_OF_IMPROVEMENT = ("steps.tsv",)
_OF_IMPROVEMENT = (*_ALWAYS_OF_IMPROVEMENT, *_PLOTS, *(f"step-*/{name}" for name in _OF_FIT))


def fit_exam(
    source: Path | str,
    settings: Settings | None = None,
    *,
    components: Path | None = None,
    groups: Path | None = None,
) -> ExamFit:
    """Fit an item response model to a response matrix.

    Args:
        source: a TSV or JSON Lines file, or a folder of such files.
        settings: None for the 3PL with the published bounds and starts, and weak priors.
        components: a TSV file with the components of each examinee; abilities are then sums over components.
        groups: a TSV file with the groups of each question.

    Raises:
        TrecexamError, ConversionError: with the reason, file and line.
    """
    return fitted(from_file(Path(source), components, groups), settings or Settings.of(priors=True))


def improve_exam(
    source: Path | str,
    settings: Settings | None = None,
    *,
    components: Path | None = None,
    steps: int = 5,
    drop: float = 0.1,
    progress: Callable[[int, int], None] | None = None,
) -> ImprovedExam:
    """Drop the least discriminating questions and fit again, step by step.

    Args:
        source, settings, components: as in `fit_exam`.
        steps, drop, progress: as in `trecexam.extensions.exams.irt.improvement.improve`.

    Raises:
        TrecexamError, ConversionError: as `fit_exam`.
    """
    return improved(
        from_file(Path(source), components),
        settings or Settings.of(priors=True),
        steps=steps,
        drop=drop,
        progress=progress,
    )


def fitted(exam: Exam, settings: Settings) -> ExamFit:
    """Return the exam's fit."""
    try:
        return ExamFit.of(exam, fit(exam.values, settings, exam.components))
    except ValueError as error:
        raise TrecexamError(str(error), path=exam.source) from None


def improved(
    exam: Exam,
    settings: Settings,
    *,
    steps: int,
    drop: float,
    progress: Callable[[int, int], None] | None = None,
) -> ImprovedExam:
    """Improve the exam; arguments as in `trecexam.extensions.exams.irt.improvement.improve`."""
    try:
        improvement = improve(
            exam.values, settings, exam.components, steps=steps, drop=drop, progress=progress
        )
    except ValueError as error:
        raise TrecexamError(str(error), path=exam.source) from None
    fits = tuple(
        ExamFit.of(
            replace(
                exam,
                items=tuple(exam.items[item_index] for item_index in step.items.tolist()),
                values=exam.values[:, step.items],
                notes=() if number else exam.notes,
            ),
            step.fit,
        )
        for number, step in enumerate(improvement.steps)
    )
    stopped = f"{plural(len(fits) - 1, 'step')}: {improvement.stopped}"
    of_fit = (Note(line, CHANGES) for line in fits[0].fit.notes)
    return ImprovedExam(improvement, fits, (*exam.notes, *of_fit, stopped))


def refuse_out(out: Path, inputs: Iterable[Path | None], *, improvement: bool = False) -> None:
    """Refuse a folder for the files of a fit or an improvement, see `refuse_folder`."""
    names, always = (_OF_IMPROVEMENT, _ALWAYS_OF_IMPROVEMENT) if improvement else (_OF_FIT, _ALWAYS_OF_FIT)
    refuse_folder(out, inputs, names, always=always)


def write_fit(exam: ExamFit, out: Path) -> list[str]:
    """Write a fit's files into a folder, and remove stale files of an earlier fit.

    Returns:
        Reasons for failed plots, one per line.
    """
    contents, why = _fit_files(exam)
    replace_all(out, contents, _OF_FIT)
    return why


def write_improvement(improved_exam: ImprovedExam, out: Path) -> list[str]:
    """Write a folder per step, steps.tsv and the curves; remove files of an earlier improvement.

    Returns, Raises:
        As `write_fit`.
    """
    contents, why = drawn([steps_plot(improved_exam.improvement)])
    for folder, step in zip(improved_exam.folders, improved_exam.fits, strict=True):
        of_step, undrawn = _fit_files(step)
        contents |= {f"{folder}/{name}": content for name, content in of_step.items()}
        why += undrawn
    contents["steps.tsv"] = improved_exam.to_tsv().encode()
    replace_all(out, contents, _OF_IMPROVEMENT)
    return why


def _fit_files(exam: ExamFit) -> tuple[dict[str, bytes], list[str]]:
    contents, why = drawn([curves_plot(exam), information_plot(exam), abilities_plot(exam)])
    contents |= {f"{name}.tsv": to_tsv(table).encode() for name, table in exam.tables.items()}
    contents["fit.json"] = to_json({**exam.facts, "notes": exam.notes}).encode()
    return contents, why
