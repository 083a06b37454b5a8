"""What trec_eval would make of a run or qrels, byte by byte; what it would not take is mended."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "check",
    commands={
        "check": Command(f"{__name__}.cli:check", "Check and mend a run or qrels for trec_eval.", "files")
    },
)
