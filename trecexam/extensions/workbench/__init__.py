"""The Rubric workbench: its pools read and written whole, and its way of reading answers.

The format `workbench` of `format.py` is an entry point of `converters.formats`.
"""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "workbench",
    commands={
        "export pool": Command(f"{__name__}.cli:pool"),
        "verify readings": Command(f"{__name__}.cli:readings"),
    },
    calls={"export": f"{__name__}.accessor:PoolCalls", "verify": f"{__name__}.accessor:ReadingCalls"},
)
