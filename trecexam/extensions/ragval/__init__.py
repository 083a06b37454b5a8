"""RAGVAL: questions from knowledge blocks, and answers to them judged for truthfulness and relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trecexam.extension import Command, Extension, named

if TYPE_CHECKING:
    from trecexam.extensions.ragval.reporting import ragval_report

__all__ = ["EXTENSION", "ragval_report"]

EXTENSION = Extension(
    "ragval",
    commands={
        "ragval": Command(
            f"{__name__}.cli:ragval", "Judge answers for truthfulness and relevance.", "published evaluators"
        )
    },
    features=(f"{__name__}.extra_outputs:RAGVAL",),
    answers=f"{__name__}.dropped:ANSWERS",
    graders={"ragval": f"{__name__}.grader:FACTORY"},
)


def __getattr__(name: str) -> Any:
    # Imports numpy, for which `trecexam --help` must not wait.
    if name == "ragval_report":
        return named(f"{__name__}.reporting:{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
