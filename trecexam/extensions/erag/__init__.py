"""eRAG: from gold outputs, runs and outputs by document to labels, scores and files."""

from __future__ import annotations

from trecexam.extension import Command, Extension

EXTENSION = Extension(
    "erag",
    commands={
        "erag": Command(
            f"{__name__}.cli:erag",
            "Score runs by a RAG model's answer from each document.",
            "published evaluators",
        )
    },
    graders={"erag": f"{__name__}.grader:FACTORY"},
)
