"""Runs from Python: `trecexam.evaluate`, `track.add_run`; and `trecexam evaluate`, run files on qrels."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "evaluate",
    commands={
        "evaluate": Command(
            f"{__name__}.cli:evaluate",
            "Evaluate run files with a qrels file; needs no track.",
            "published evaluators",
        )
    },
    accessors={"add_run": f"{__name__}.accessor:AddRunAccessor"},
)
