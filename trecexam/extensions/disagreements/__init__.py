"""Differences from the official side: swapped pairs, outliers; and representative queries."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "disagreements",
    commands={
        "swaps": Command(
            f"{__name__}.cli:swaps", "List run pairs that the official side orders otherwise.", "look closer"
        ),
        "outliers": Command(
            f"{__name__}.cli:outliers", "List runs that the official side ranks otherwise.", "look closer"
        ),
        "representative": Command(
            f"{__name__}.cli:representative", "Find few queries that order the runs as all do.", "look closer"
        ),
    },
    calls={"correlate": f"{__name__}.accessor:DisagreementCalls"},
    features=(f"{__name__}.outputs:DISAGREEMENTS",),
)
