"""Does a cell get the same answer again, whatever is graded with it? `trecexam verify reproducible`."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "reproducible",
    commands={"verify reproducible": Command(f"{__name__}.cli:reproducible")},
    calls={"verify": f"{__name__}.accessor:ReproducibleCalls"},
)
