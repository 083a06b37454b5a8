"""The filter of an exam's questions: a stem must not refer to the text that it was made from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from trecexam.extensions.exams.exam_file import ExamQuestion

_PATTERNS = Path(__file__).parent / "texts" / "self-contained.txt"


def read_patterns(path: Path) -> list[re.Pattern[str]]:
    """Reads regular expressions from a file, one per line; lines that begin with # are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    patterns = (line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return [re.compile(pattern, re.IGNORECASE) for pattern in patterns]


def not_self_contained(questions: Sequence[ExamQuestion]) -> dict[int, str]:
    """Index of a question whose stem refers to its text -> the reason to drop the question."""
    patterns = read_patterns(_PATTERNS)
    reasons: dict[int, str] = {}
    for question_index, question in enumerate(questions):
        # Typographic quotes are quotes, too.
        stem = re.sub("[\u201c\u201d]", '"', question.question)
        match = next(filter(None, (pattern.search(stem) for pattern in patterns)), None)
        if match:
            reasons[question_index] = f"refers to the text that it was made from: '{match[0]}'"
    return reasons
