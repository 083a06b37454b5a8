"""Cut points of the embedding grader, fitted on a track's official judgments: `trecexam cut-points`."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "cut_points",
    commands={
        "cut-points": Command(
            f"{__name__}.cli:cut_points", "Fit the embedding grader's ratings to judgments.", "look closer"
        )
    },
    calls={"grading": f"{__name__}.accessor:CutPointCalls"},
)
