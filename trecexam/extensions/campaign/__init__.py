"""Judging campaigns: plan, agreement of assessors, and what to judge next."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "campaign",
    commands={
        "judge": Command(
            f"{__name__}.cli:judge",
            "Run a campaign of assessors: plan, agreement, qrels.",
            "people",
        ),
        "judge-next": Command(
            f"{__name__}.cli.judge_next:judge_next", "List what a person should judge next.", "people"
        ),
    },
)
