"""More of `track.grading`: cut points of the embedding grader."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_folder
from trecexam.extensions.cut_points import fitting


@named_as_called
class CutPointCalls(Accessor):
    """What cosine means which rating: `track.grading.cut_points()`."""

    cut_points = on_folder(fitting.cut_points)
