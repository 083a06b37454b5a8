"""A judge for TREC AutoJudge: graders of a RAG track behind the framework's interface."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "autojudge",
    commands={
        "autojudge": Command(
            f"{__name__}.cli:autojudge",
            "Make a judge for TREC AutoJudge.",
            "published evaluators",
        )
    },
)
