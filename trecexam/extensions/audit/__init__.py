"""Audit of runs with one or two sets of judgments; needs no track, bank, text or model."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "audit",
    commands={
        "audit": Command(f"{__name__}.cli:audit", "Show which conclusions about runs survive.", "look closer")
    },
)
