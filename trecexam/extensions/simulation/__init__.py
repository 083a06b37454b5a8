"""Simulations that drop and fill official judgments, to test filling."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "simulation",
    commands={
        "simulate": Command(
            f"{__name__}.cli:simulate", "Simulate how far filled holes can be trusted.", "holes"
        )
    },
)
