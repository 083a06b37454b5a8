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
        ),
        "exam generate": Command(
            f"{__name__}.cli.generating:generating",
            "Write a question about each passage with a language model.",
        ),
        "exam filter": Command(
            f"{__name__}.cli.generating:filtering", "Remove questions that refer to their text, and say why."
        ),
        "exam score": Command(
            f"{__name__}.cli.scoring:scoring", "Have models take an exam, with retrievers."
        ),
        "exam fit": Command(
            f"{__name__}.cli.fitting:fit", "Fit an item response model to responses, or to a track."
        ),
        "exam improve": Command(
            f"{__name__}.cli.fitting:improve", "Drop the worst questions and fit again, step by step."
        ),
    },
    features=(f"{__name__}.outputs:EXAMS",),
)
