"""A server's answers again and again: what its own randomness does to ranks. `trecexam repeat`."""

from __future__ import annotations

from trecexam.extension import Command, Extension

#: Repetitions at most.
MOST = 100

EXTENSION = Extension(
    "repeated",
    commands={
        "repeat": Command(
            f"{__name__}.cli:repeat", "Show how far ranks move if a server judges again.", "look closer"
        )
    },
    accessors={"repeat": f"{__name__}.accessor:RepeatAccessor"},
)
