"""Scores of what systems make of the passages they retrieve: answers, and their judgments."""
