"""`trecexam verify reproducible`: tests whether answers depend on the other cells of a batch."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "reproducible",
    commands={"verify reproducible": Command(f"{__name__}.cli:reproducible")},
    calls={"verify": f"{__name__}.accessor:ReproducibleCalls"},
)
