"""The `erag` grader: what the RAG system's own model makes of a document alone, against the gold outputs.

Salemi and Zamani, "Evaluating Retrieval Quality in Retrieval-Augmented Generation", SIGIR 2024.
"""

from trecexam.graders.erag.grader import FACTORY, EragGrader, Label, erag_prompt

__all__ = ["FACTORY", "EragGrader", "Label", "erag_prompt"]
