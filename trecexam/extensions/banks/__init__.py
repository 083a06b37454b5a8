"""Test banks: written by a model, checked, compared, edited."""

from __future__ import annotations

from trecexam.extension import Command, Extension

_COMMANDS = f"{__name__}.cli"
EXTENSION = Extension(
    "banks",
    commands={
        "bank": Command(f"{_COMMANDS}:bank", "Make, check and compare test banks.", "banks and exams"),
        "bank generate": Command(f"{_COMMANDS}:generate", "Write items with a language model."),
        "bank check": Command(
            f"{_COMMANDS}:check", "Find duplicates, copies of the query, remains of JSON ..."
        ),
        "bank diff": Command(f"{_COMMANDS}:diff", "Show what an edited bank changes: labels and ranks."),
    },
    services={"bank_writer": f"{__name__}.generation.generate:bank_job"},
)
