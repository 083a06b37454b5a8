"""Packs: inputs, grades and environment of a track in one archive, from which out/ is made again."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "pack",
    commands={"export pack": Command(f"{__name__}.cli:pack")},
    services={"packs": f"{__name__}.packing:PACKS"},
)
