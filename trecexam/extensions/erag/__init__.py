"""eRAG: labels, scores and files from gold outputs, runs and a model's outputs by document."""

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
