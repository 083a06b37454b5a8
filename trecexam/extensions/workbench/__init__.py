"""Compatibility with the Rubric workbench: pools, reading of answers, and the row over all runs.

The format `workbench` of `format.py` is an entry point of `converters.formats`.
"""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "workbench",
    commands={
        "export pool": Command(f"{__name__}.cli:pool"),
        "overall": Command(
            f"{__name__}.cli:overall", "Show what all runs reach together, and official ranks.", "look closer"
        ),
        "verify readings": Command(f"{__name__}.cli:readings"),
    },
    accessors={"overall": f"{__name__}.accessor:OverallAccessor"},
    calls={"export": f"{__name__}.accessor:PoolCalls", "verify": f"{__name__}.accessor:ReadingCalls"},
)
