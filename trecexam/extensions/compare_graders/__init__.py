"""Comparison of graders of one track with official judgments and with each other."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "compare_graders",
    commands={
        "compare-graders": Command(
            f"{__name__}.cli:compare_graders",
            "Compare graders with official judgments and each other.",
            "look closer",
        )
    },
)
