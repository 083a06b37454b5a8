"""Citation support: tables and files of a support grader's labels, and comparison with people."""

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
