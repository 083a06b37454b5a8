"""Exams: response matrices and rubric banks as exams, item response models, and their files."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "exams",
    commands={
        "exam": Command(
            f"{__name__}.cli:exam",
            "Make multiple-choice exams, and score systems by them.",
            "banks and exams",
        )
    },
    features=(f"{__name__}.outputs:EXAMS",),
)
