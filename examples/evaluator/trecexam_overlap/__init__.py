"""What this evaluator adds to trecexam. Nothing heavy is imported here: `trecexam --help` reads it."""

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "overlap",
    commands={"overlap": Command("trecexam_overlap.cli:overlap", "The items' words in runs.", "look closer")},
    features=("trecexam_overlap.feature:OVERLAP",),
    settings={"overlap": "trecexam_overlap.feature:OverlapSection"},
    graders={"overlap": "trecexam_overlap.grader:FACTORY"},
)
