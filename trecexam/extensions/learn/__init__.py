"""Learns labels for unjudged passages of the pool from a track's judgments."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "learn",
    commands={
        "learn": Command(
            f"{__name__}.cli:learn", "Learn labels for unjudged passages from judgments.", "holes"
        ),
    },
    features=(f"{__name__}.outputs:LEARNING",),
    settings={"learn": f"{__name__}.settings:LearnSection"},
    labels={"learned": f"{__name__}.teaching:TEACHER"},
)
