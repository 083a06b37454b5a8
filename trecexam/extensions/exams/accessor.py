"""`track.exam`: exams on a track's passages that a model writes, and its bank as one that the runs take."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_folder, on_graded
from trecexam.extensions.exams import calls


@named_as_called
class ExamAccessor(Accessor):
    """Exams on the track's passages, and its bank as one that the runs take."""

    fit = on_graded(calls.fit_exam)
    improve = on_graded(calls.improve_exam)
    generate = on_folder(calls.generate_exam)
    estimate = on_folder(calls.estimate_exam)
    refill = on_folder(calls.refill_exam)
    estimate_refilling = on_folder(calls.estimate_refilling)
