"""A campaign of people who judge: who judges what, how far they are, how far they agree, what comes of it."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "campaign",
    commands={
        "judge": Command(
            f"{__name__}.cli:judge", "Assessors: who judges what, progress, agreement, qrels.", "people"
        )
    },
    accessors={"judging": f"{__name__}.accessor:JudgingAccessor"},
)
