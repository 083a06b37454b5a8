"""Graders: who answers, for each cell, how well a passage answers an item (0..5)."""

from trecexam.graders.base import Answer, Cell, Factory, Grader
from trecexam.graders.registry import available, create

__all__ = ["Answer", "Cell", "Factory", "Grader", "available", "create"]
