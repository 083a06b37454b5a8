"""The Rubric workbench's file format, and the track's pool in it.

The format `workbench` of `format.py` is an entry point of `converters.formats`.
"""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "workbench",
    commands={"export pool": Command(f"{__name__}.cli:pool")},
    calls={"export": f"{__name__}.accessor:PoolCalls"},
)
