"""Scores of what a model makes of retrieved documents: eRAG's ranked lists, RAGVAL's judged answers."""
