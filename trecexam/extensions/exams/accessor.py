"""`track.exam`: exams on a track's passages that a model writes, and its bank as one that the runs take."""

from __future__ import annotations

from pathlib import Path

from trecexam.calls import Accessor, asking, estimating, named_as_called, on_graded
from trecexam.extensions.exams import calls


@named_as_called
class ExamAccessor(Accessor):
    """Exams on the track's passages, and its bank as one that the runs take."""

    fit = on_graded(calls.fit_exam)
    improve = on_graded(calls.improve_exam)
    generate = asking(calls.exam_job)
    estimate = estimating(calls.exam_job)
    refill = asking(calls.refilling_job)
    estimate_refilling = estimating(calls.refilling_job)

    @property
    def out(self) -> Path:
        """The output files of the grader that `fit` is about."""
        return self._folder_of(calls.fit_exam).out
