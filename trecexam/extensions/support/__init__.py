"""Citation support: what a grader of support says of responses, as tables and files, and beside people."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "support",
    commands={
        "support": Command(
            f"{__name__}.cli:support",
            "Show how well cited passages support responses.",
            "look closer",
        )
    },
    accessors={"support": f"{__name__}.accessor:SupportAccessor"},
    features=(f"{__name__}.outputs:SUPPORT_FEATURE",),
)
