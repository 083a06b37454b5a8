"""Test banks: written by a model, checked, compared, edited."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "banks",
    commands={
        "bank": Command(f"{__name__}.cli:bank", "Make, check and compare test banks.", "banks and exams")
    },
    bank_writer=f"{__name__}.generation.calls:bank_job",
)
