"""Simulations: official judgments are dropped and filled again, to see how far filling can be trusted."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "simulation",
    commands={
        "simulate": Command(
            f"{__name__}.cli:simulate", "Simulate how far filled holes can be trusted.", "holes"
        )
    },
    accessors={"simulate": f"{__name__}.accessor:SimulateAccessor"},
)
