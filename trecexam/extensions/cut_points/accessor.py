"""More of `track.grading`: cut points of the embedding grader."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_folder
from trecexam.extensions.cut_points import fitting


@named_as_called
class CutPointCalls(Accessor):
    """`track.grading.cut_points()`: cosines at which ratings change."""

    cut_points = on_folder(fitting.cut_points)
