"""Cut points of the embedding grader, fitted on official judgments: `track.grading.cut_points()`."""

from __future__ import annotations

from trecexam.extension import Extension

EXTENSION = Extension("cut_points", calls={"grading": f"{__name__}.accessor:CutPointCalls"})
