"""`track.exam`: exams on a track's passages, and the track's bank as an exam of its runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trecexam.extensions.exams.fitting import improved
from trecexam.extensions.exams.generating import GeneratedExam, exam_job
from trecexam.extensions.exams.irt.settings import Settings
from trecexam.extensions.exams.responses import from_track
from trecexam.extensions.exams.results import ExamFit, ImprovedExam
from trecexam.extensions.exams.rubric import default_settings, fit_track, has_examinees
from trecexam.graders.base import Estimate
from trecexam.graders.writing.asking import ShowProgress, Stop
from trecexam.track_groups import Group


class ExamAccessor(Group):
    """Exams on the track's passages, and the track's bank as an exam of its runs."""

    def fit(
        self, settings: Settings | None = None, *, components: Path | None = None, groups: Path | None = None
    ) -> ExamFit:
        """Fit an item response model: abilities of runs, difficulty and discrimination of items.

        A run has an item right if one of its first passages is rated min_rating or better on the item.

        Args:
            settings: None for the 2PL with priors.
            components, groups: tables with the components of runs, and with the groups of items.

        Raises:
            TrecexamError, ConversionError: no grades, or no model can be fitted.
        """
        graded = self._track.graded(has_examinees)
        result = fit_track(graded, settings, components=components, groups=groups)
        return self._track.with_grade_notes(result, graded)

    def improve(
        self,
        settings: Settings | None = None,
        *,
        components: Path | None = None,
        steps: int = 5,
        drop: float = 0.1,
        progress: Callable[[int, int], None] | None = None,
    ) -> ImprovedExam:
        """Drop the least discriminating items and fit again, step by step.

        Args:
            settings, components: as in `fit`.
            steps, drop, progress: as in `trecexam.extensions.exams.irt.improvement.improve`.

        Raises:
            TrecexamError, ConversionError: as `fit`.
        """
        graded = self._track.graded(has_examinees)
        exam, settings = from_track(graded, components), settings or default_settings()
        steps_done = improved(exam, settings, steps=steps, drop=drop, progress=progress)
        return self._track.with_grade_notes(steps_done, graded)

    def generate(
        self,
        task_domain: str,
        *,
        output: Path | str | None = None,
        progress: ShowProgress | None = None,
        stop: Stop | None = None,
    ) -> GeneratedExam:
        """Write a question about each passage with a language model, like `exam generate`.

        Args:
            task_domain: the source of the passages, such as "the manuals of heat pumps".
            output: file of the exam; None for exam.jsonl in the track's folder.
            progress: called with (prompts answered, prompts in all).
            stop: called repeatedly; True ends the requests early and keeps the answers so far.

        Raises:
            ConversionError: the passages cannot be read.
            TrecexamError: there are no passages, no model can be called, or the existing exam was edited.
        """
        with self._track.model_lock():
            return exam_job(self._track.folder, task_domain, output=output).ask(
                progress, stop, self._track.loaders.spent_by_graders
            )

    def estimate(self, task_domain: str, *, output: Path | str | None = None) -> Estimate:
        """Estimate prompts ("cells"), tokens and cost of `generate`."""
        return exam_job(self._track.folder, task_domain, output=output).estimate()

    @property
    def out(self) -> Path:
        """The output files of the grader that `fit` uses."""
        return self._track.loader(has_examinees).folder.out
