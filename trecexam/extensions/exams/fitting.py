"""Fits of exams from files and tracks, and their improvement; and the files that are written of both."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError
from trecexam.extensions.exams import tables
from trecexam.extensions.exams.irt.exam import Exam
from trecexam.extensions.exams.irt.fitting import fit
from trecexam.extensions.exams.irt.improvement import LEAST_ITEMS, ImprovementStep, improve
from trecexam.extensions.exams.irt.settings import Settings
from trecexam.extensions.exams.plots import exam_plots, steps_plot
from trecexam.extensions.exams.response_matrix import ResponseMatrix
from trecexam.extensions.exams.responses import ExamResponses, LabelFiles, from_file, usable_responses
from trecexam.extensions.exams.results import ExamFit, ImprovedExam, told
from trecexam.files import atomic as files
from trecexam.tables.plots.canvas import draw
from trecexam.tables.plots.drawings import plot_files
from trecexam.tables.table import to_json, to_tsv
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.tables.plots.model import Plot

#: What `write_fit` writes only where it applies.
_OPTIONAL = ("components.tsv", "correlation.tsv", "matrix.tsv")
_STEP = re.compile(r"step-\d+\Z")


def fit_exam(
    source: Path | str | ResponseMatrix,
    settings: Settings | None = None,
    *,
    components: Path | None = None,
    groups: Path | None = None,
) -> ExamFit:
    """Fits an item response model to a response matrix.

    Args:
        source: a TSV or JSON Lines file, a folder of them, or a matrix.
        settings: None for the 3PL with the published bounds and starts, and weak priors.
        components: a TSV file that says what each examinee is made of; abilities are then their sums.
        groups: a TSV file that says which groups each question is in.

    Raises:
        TrecexamError, ConversionError: what stands in the way, with the file and line.
    """
    return fitted(_responses(source, LabelFiles(components, groups)), settings or Settings.of(priors=True))


def improve_exam(
    source: Path | str | ResponseMatrix,
    settings: Settings | None = None,
    *,
    components: Path | None = None,
    groups: Path | None = None,
    steps: int = 5,
    drop: float = 0.1,
    min_items: int = LEAST_ITEMS,
    min_gain: float | None = None,
    progress: Callable[[ImprovementStep], None] | None = None,
) -> ImprovedExam:
    """Drops the least discriminating questions and fits again, step by step.

    Args:
        source, settings, components, groups: as in `fit_exam`.
        steps, drop, min_items, min_gain, progress: as in `trecexam.extensions.exams.irt.improve`.

    Raises:
        TrecexamError, ConversionError: as `fit_exam`.
    """
    return improved(
        _responses(source, LabelFiles(components, groups)),
        settings or Settings.of(priors=True),
        steps=steps,
        drop=drop,
        min_items=min_items,
        min_gain=min_gain,
        progress=progress,
    )


def _responses(source: Path | str | ResponseMatrix, labels: LabelFiles) -> ExamResponses:
    return (
        usable_responses("the matrix", source, labels)
        if isinstance(source, ResponseMatrix)
        else from_file(Path(source), labels)
    )


def fitted(responses: ExamResponses, settings: Settings) -> ExamFit:
    """The exam's fit.

    Raises:
        TrecexamError: a model cannot be fitted to it.
    """
    exam = replace(responses.exam, notes=responses.notes)
    try:
        result = fit(exam.values, settings, exam.components)
    except ValueError as error:
        raise TrecexamError(str(error), path=responses.source) from None
    found = ExamFit(exam, result)
    return replace(found, notes=tuple(told(found)))


def improved(
    responses: ExamResponses,
    settings: Settings,
    *,
    steps: int,
    drop: float,
    min_items: int = LEAST_ITEMS,
    min_gain: float | None = None,
    progress: Callable[[ImprovementStep], None] | None = None,
) -> ImprovedExam:
    """The exam's improvement; arguments as in `trecexam.extensions.exams.irt.improve`.

    Raises:
        TrecexamError: a model cannot be fitted to it, or an argument is impossible.
    """
    exam = replace(responses.exam, notes=responses.notes)
    try:
        improvement = improve(
            exam.values,
            settings,
            exam.components,
            steps=steps,
            drop=drop,
            min_items=min_items,
            min_gain=min_gain,
            progress=progress,
        )
    except ValueError as error:
        raise TrecexamError(str(error), path=responses.source) from None
    fits = tuple(
        ExamFit(_part(exam if number == 0 else replace(exam, notes=()), step.items.tolist()), step.fit)
        for number, step in enumerate(improvement.steps)
    )
    stopped = f"{plural(len(fits) - 1, 'step')}: {improvement.stopped}"
    return ImprovedExam(exam, improvement, fits, (*exam.notes, *fits[0].fit.notes, stopped))


def _part(exam: Exam, places: Sequence[int]) -> Exam:
    """The exam with these items alone."""
    new = {place: number for number, place in enumerate(places)}
    groups = {
        grouping: {
            group: kept for group, old in members.items() if (kept := [new[n] for n in old if n in new])
        }
        for grouping, members in exam.groups.items()
    }
    return replace(
        exam,
        items=tuple(exam.items[place] for place in places),
        values=exam.values[:, list(places)],
        groups={grouping: members for grouping, members in groups.items() if members},
    )


def write_fit(exam: ExamFit, out: Path, *, plots: bool = True) -> list[str]:
    """Writes a fit's files into a folder; what of an earlier fit does not apply to this one is removed.

    Returns:
        Why a plot could not be drawn, a line each.

    Raises:
        TrecexamError: a file cannot be written.
    """
    written = {f"{name}.tsv": table for name, table in exam.tables.items() if name != "abilities"}
    files.make_folder(out)
    for name in _OPTIONAL:
        if name not in written:
            files.remove(out / name)
    for name, table in written.items():
        files.replace(out / name, to_tsv(table).encode())
    files.replace(out / "fit.json", to_json(tables.fit_json(exam)).encode())
    _clear_plots(out)
    return list(_draw(exam_plots(exam).values(), out)) if plots else []


def write_improvement(improved_exam: ImprovedExam, out: Path, *, plots: bool = True) -> list[str]:
    """Writes a folder for each step, steps.tsv and the curves of all; an earlier improvement's are removed.

    Returns, Raises:
        As `write_fit`.
    """
    files.make_folder(out)
    for old in sorted(
        path for path in out.iterdir() if _STEP.match(path.name) and path.name not in improved_exam.folders
    ):
        _clear(old)
    why: list[str] = []
    for folder, step in zip(improved_exam.folders, improved_exam.fits, strict=True):
        why += write_fit(step, out / folder, plots=plots)
    files.replace(out / "steps.tsv", improved_exam.to_tsv().encode())
    files.replace(out / "improve.json", to_json(improvement_json(improved_exam)).encode())
    _clear_plots(out)
    return why + (list(_draw([steps_plot(improved_exam.improvement)], out)) if plots else [])


def improvement_json(improved_exam: ImprovedExam) -> dict[str, object]:
    """The steps with full precision, and why there are no more."""
    steps = [
        {
            **row,
            "converged": step.fit.converged,
            "dropped": [improved_exam.exam.items[place] for place in step.dropped],
        }
        for row, step in zip(improved_exam.table.records(), improved_exam.improvement.steps, strict=True)
    ]
    notes = [*improved_exam.exam.notes, *improved_exam.fits[0].fit.notes]
    return {"stopped": improved_exam.improvement.stopped, "steps": steps, "notes": notes}


def _draw(plots: Iterable[Plot], out: Path) -> Iterator[str]:
    for plot in plots:
        drawing = draw(plot)
        for name, content in plot_files(plot, drawing):
            files.replace(out / name, content)
        if drawing.why:
            yield f"plot {plot.name} could not be drawn: {drawing.why}"


def _clear_plots(out: Path) -> None:
    """Removes the plots of an earlier fit: which there are depends on its components and groups."""
    for path in (out / "plots").glob("*"):
        if path.suffix in (".svg", ".png", ".tsv"):
            files.remove(path)
    with contextlib.suppress(OSError):
        (out / "plots").rmdir()


def _clear(step: Path) -> None:
    """Removes the folder of a step that is no more, as far as its files are ours."""
    _clear_plots(step)
    for name in ("items.tsv", "examinees.tsv", "information.tsv", "item_quality.tsv", "fit.json", *_OPTIONAL):
        files.remove(step / name)
    with contextlib.suppress(OSError):
        step.rmdir()
