"""Test banks: written by a model, checked, compared, edited."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "banks",
    commands={
        "bank": Command(f"{__name__}.cli:bank", "Make, check and compare test banks.", "banks and exams"),
        "bank generate": Command(f"{__name__}.cli:generate", "Write items with a language model."),
        "bank check": Command(
            f"{__name__}.cli:check", "Find duplicates, copies of the query, remains of JSON ..."
        ),
        "bank diff": Command(f"{__name__}.cli:diff", "Show what an edited bank changes: labels and ranks."),
    },
    services={"bank_writer": f"{__name__}.generation.generate:bank_job"},
)
