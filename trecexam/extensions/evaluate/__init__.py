"""`trecexam.evaluate` and `track.add_run` for Python; `trecexam evaluate` for run files and qrels."""

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
