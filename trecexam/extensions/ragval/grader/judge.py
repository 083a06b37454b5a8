"""RAGVAL's judge: question, answer and knowledge block in, two scores out. One answer grades both items.

The system prompt is as published; the released code builds but never sends it, this judge does. The rest of
the prompt is unpublished, and written for trecexam.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extensions.ragval.grader.reading import PERMITTED, read_scores
from trecexam.graders.base import Cell, Factory
from trecexam.graders.writing.base import Fitted, Writer, WritingGrader, missing_for_writing, refuse
from trecexam.graders.writing.create import grading_writer
from trecexam.templates import filled

#: Kinds of graded items; one request answers both.
JUDGED_KINDS = ("relevance", "truthfulness")
_SCORE = {"type": "number", "enum": [int(score) if score.is_integer() else score for score in PERMITTED]}
#: JSON schema for servers.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": dict.fromkeys(JUDGED_KINDS, _SCORE),
    "required": list(JUDGED_KINDS),
    "additionalProperties": False,
}


@cache
def text_of(name: str) -> str:
    """Return the system's or the user's part of the prompt."""
    path = Path(__file__).parent / "texts" / f"{name}.txt"
    return path.read_text(encoding="utf-8").removesuffix("\n")


class Judge(WritingGrader):
    """Judges answers to questions whose items hold the knowledge block as their answer key."""

    name = "ragval"
    item_kinds = frozenset(JUDGED_KINDS)
    #: Defaults of [scores]: a system gives one answer per question, and its label is the lower rating.
    score_settings: Mapping[str, Any] = {
        "measures": ["P(rel=4)@1", "Cover(rel=4)@1", "nDCG@1"],
        "min_answers": 2,
    }

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer)
        # The two items of an answer follow each other, and have the same prompt.
        self._prompted = lru_cache(maxsize=2)(self._prompt)

    def prompt(self, cell: Cell) -> Fitted:
        return self._prompted(cell.item.text, cell.text, cell.item.gold_answers[0])

    def _prompt(self, question: str, answer: str, block: str) -> Fitted:
        values = {"question": self.writer.plain(question), "answer": self.writer.plain(answer)}

        def render(part: str) -> str:
            return filled(text_of("user"), {**values, "block": part}, jinja=False, name=self.name)

        return self.writer.fitted(render, block)

    def read(self, item: Item, text: str, cut: bool = False) -> int | None:
        """Read the score for the item's kind, rounded down; unparsed if either score cannot be read."""
        return _rating(item, text, cut)

    def asked(self) -> Mapping[str, Any]:
        # The writer sends the system message.
        template = text_of("user")
        return {"prompts": [{"name": self.name, "asks": kind, "template": template} for kind in JUDGED_KINDS]}


def _rating(item: Item, text: str, cut: bool = False) -> int | None:
    scores = read_scores(text, cut=cut)
    return None if scores is None else math.floor(getattr(scores, item.kind))


def _create(settings: GraderSection, root: Path) -> Judge:
    refuse(settings, ("prompt", "decode", "compat", "passage_first"), "has a fixed prompt")
    if settings.structured == "choice":
        raise GraderError(
            '`ragval` reads two scores: set `structured` in [grader] to "json_schema" or "none"'
        )
    held = settings.structured != "none" and settings.base_url is not None
    return Judge(grading_writer(settings, root, text_of("system"), SCHEMA if held else None))


FACTORY = Factory(
    summary="RAGVAL's judge: truthfulness and relevance of answers; a model here or behind a server",
    missing=missing_for_writing,
    create=_create,
    reads=("base_url",),
    reading=lambda settings, root: {"read": _rating},
)
