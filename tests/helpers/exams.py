"""Exam questions to filter and answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trecexam.extensions.exams.exam_file import ExamQuestion

PASSAGE = (
    "A heat pump moves heat from the cold air outside into the warm rooms of a house. It needs electric "
    "power for its compressor. In cold winters frost settles on its outer coil, and the pump defrosts it by "
    "running backwards for some minutes."
)
STEM = "What does a heat pump move from the cold air outside into a house?"
CHOICES = ("Heat that is in the air", "Fresh water for taps", "Light from the sun", "Sound of the street")


def question(
    number: int = 0,
    stem: str = STEM,
    choices: Sequence[str] = CHOICES,
    correct: int = 0,
    documentation: str = PASSAGE,
    **rest: Any,
) -> ExamQuestion:
    return ExamQuestion(f"x{number}", stem, tuple(choices), correct, f"d{number}", documentation, rest=rest)


def write_exam(path: Path, questions: Sequence[ExamQuestion]) -> Path:
    path.write_text("".join(json.dumps(each.row()) + "\n" for each in questions))
    return path
