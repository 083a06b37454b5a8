"""Check of how trec_eval reads a run or qrels, byte by byte, and repair of rejected files."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "check",
    commands={
        "check": Command(f"{__name__}.cli:check", "Check and mend a run or qrels for trec_eval.", "files")
    },
)
