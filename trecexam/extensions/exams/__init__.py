"""Exams: response matrices and rubric banks as exams, item response models, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trecexam.extension import Command, Extension, named

if TYPE_CHECKING:
    from trecexam.extensions.exams.filtering import filter_exam
    from trecexam.extensions.exams.fitting import fit_exam, improve_exam

__all__ = ["EXTENSION", "filter_exam", "fit_exam", "improve_exam"]

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
    item_values={"discrimination": f"{__name__}.rubric:discriminations"},
)
_HOME = {"filter_exam": "filtering", "fit_exam": "fitting", "improve_exam": "fitting"}


def __getattr__(name: str) -> Any:
    # Imports scipy, for which `trecexam --help` must not wait.
    if name in _HOME:
        return named(f"{__name__}.{_HOME[name]}:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
