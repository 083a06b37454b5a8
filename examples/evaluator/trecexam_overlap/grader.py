"""The grader: 5 times the share of the item's words that the passage has."""

import re

from trecexam.graders import Answer, Factory, Grader


class OverlapGrader(Grader):
    @property
    def identity(self):
        """All that can change an answer."""
        return {"grader": "overlap", "version": 1}

    def grade(self, cells):
        for cell in cells:
            asked, there = (set(re.findall(r"\w+", text.lower())) for text in (cell.item.text, cell.text))
            share = len(asked & there) / max(len(asked), 1)
            yield [(cell, Answer(round(5 * share), "ok", f"{share:.3f}"))]


FACTORY = Factory(
    summary="the share of an item's words that a passage has",
    missing=lambda: "",
    create=lambda settings, root: OverlapGrader(),
    runs_model=False,
)
