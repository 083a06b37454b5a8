"""`track.exam`: exams on a track's passages, and the track's bank as an exam of its runs."""

from __future__ import annotations

from pathlib import Path

from trecexam.calls import Accessor, asking, estimating, named_as_called, on_graded
from trecexam.extensions.exams.generating import exam_job
from trecexam.extensions.exams.rubric import fit_track, improve_track


@named_as_called
class ExamAccessor(Accessor):
    """Exams on the track's passages, and the track's bank as an exam of its runs."""

    fit = on_graded(fit_track)
    improve = on_graded(improve_track)
    generate = asking(exam_job)
    estimate = estimating(exam_job)

    @property
    def out(self) -> Path:
        """The output files of the grader that `fit` uses."""
        return self._folder_of(fit_track).out
