"""Judging campaigns: plan, agreement of assessors, and suggestions of passages to judge."""

from __future__ import annotations

from trecexam.extension import Command, Extension

_COMMANDS = f"{__name__}.cli"
EXTENSION = Extension(
    "campaign",
    commands={
        "judge": Command(
            f"{_COMMANDS}:judge", "Run a campaign of assessors: plan, agreement, qrels.", "people"
        ),
        "judge plan": Command(f"{_COMMANDS}:plan", "Divide the passages to judge among assessors."),
        "judge agreement": Command(f"{_COMMANDS}:agreement", "Show how far assessors agree, and where not."),
        "judge export": Command(f"{_COMMANDS}:export", "Write qrels, six-column qrels and all judgments."),
        "judge import": Command(f"{_COMMANDS}:import_", "Add a table of judgments."),
        "judge-next": Command(f"{_COMMANDS}:judge_next", "List what a person should judge next.", "people"),
    },
)
