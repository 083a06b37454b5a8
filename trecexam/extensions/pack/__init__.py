"""Packs: a track in one file, its reproduction, and merging of answers."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "pack",
    commands={
        "pack": Command(
            f"{__name__}.cli:pack", "Pack all that out/ is computed from into one file.", "files"
        ),
        "reproduce": Command(
            f"{__name__}.cli:reproduce", "Compute a pack's numbers again, and compare.", "files"
        ),
        "merge": Command(f"{__name__}.cli:merge", "Join the answers of several packs.", "files"),
    },
    accessors={"pack": f"{__name__}.accessor:PackAccessor"},
)
