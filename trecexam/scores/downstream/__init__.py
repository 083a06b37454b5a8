"""Scores from what a downstream model made of the documents: eRAG's ranked lists, and their correlation."""
