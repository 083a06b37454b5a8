"""Multiple-choice exams: JSON Lines with a question per line and its source passage."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from converters.errors import ConversionError
from converters.fields import TEXT_KEYS, a_text, an_id
from converters.lines import iter_objects
from converters.passages import ID_KEYS

#: Number of candidates of a question, and their letters.
LETTERS = "ABCD"
_FIELDS = ("question_id", "question", "choices", "correct", "doc_id", "documentation", "topic")


@dataclass(frozen=True)
class ExamQuestion:
    """A multiple-choice question.

    Attributes:
        question: the stem.
        choices: four candidates, without letters.
        correct: index of the right candidate, 0..3.
        documentation: text of the source passage `doc_id`.
        topic: topic, or "".
        rest: other fields of the line, kept unchanged.
    """

    question_id: str
    question: str
    choices: tuple[str, ...]
    correct: int
    doc_id: str
    documentation: str
    topic: str = ""
    rest: Mapping[str, Any] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """Return the question as a JSON object."""
        return {
            "question_id": self.question_id,
            "question": self.question,
            "choices": list(self.choices),
            "correct": self.correct,
            "doc_id": self.doc_id,
            "documentation": self.documentation,
            **({"topic": self.topic} if self.topic else {}),
            **self.rest,
        }


def read_exam(path: str | os.PathLike[str]) -> Iterator[ExamQuestion]:
    """Read the questions of an exam, in order."""
    lines: dict[str, int] = {}
    for number, row in iter_objects(path):
        question = _question(path, number, row)
        first = lines.setdefault(question.question_id, number)
        if first != number:
            raise ConversionError(
                path,
                number,
                f"question id '{question.question_id[:80]}' occurs twice (first on line {first})",
            )
        yield question


def exam_line(row: Mapping[str, Any]) -> bytes:
    """Return a line of an exam file."""
    return json.dumps(row, ensure_ascii=False).encode(errors="replace") + b"\n"


def _tsv_id(path: str | os.PathLike[str], number: int, row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return an id that can be a column or cell of a TSV file."""
    record_id = an_id(path, number, row, keys)
    if not record_id.isprintable() or record_id != record_id.strip():
        raise ConversionError(
            path,
            number,
            f"id {record_id!r}: no tabs, line ends, control characters or blanks around it"[:200],
        )
    return record_id


def _question(path: str | os.PathLike[str], number: int, row: Mapping[str, Any]) -> ExamQuestion:
    question_id = _tsv_id(path, number, row, ("question_id",))
    what = f"question '{question_id[:80]}'"
    choices = row.get("choices")
    if (
        not isinstance(choices, list)
        or len(choices) != len(LETTERS)
        or not all(isinstance(choice, str) for choice in choices)
    ):
        raise ConversionError(path, number, f'"choices" of {what} are not {len(LETTERS)} texts in a list')
    correct = row.get("correct")
    if not isinstance(correct, int) or isinstance(correct, bool) or not 0 <= correct < len(LETTERS):
        raise ConversionError(
            path,
            number,
            f'"correct" of {what} must be the index of the right candidate, 0..3, not {correct!r}'[:200],
        )
    topic = row.get("topic")
    if topic is not None and not isinstance(topic, str):
        raise ConversionError(path, number, f'"topic" of {what} is not text')
    return ExamQuestion(
        question_id,
        a_text(path, number, row, ("question",), what, blank=True),
        tuple(choices),
        correct,
        an_id(path, number, row, ("doc_id",)),
        a_text(path, number, row, ("documentation",), what, blank=True),
        topic or "",
        {key: value for key, value in row.items() if key not in _FIELDS},
    )


class Source(NamedTuple):
    """A passage of a knowledge corpus; `title` and `topic` are "" if missing."""

    doc_id: str
    text: str
    title: str = ""
    topic: str = ""


def read_sources(path: str | os.PathLike[str]) -> Iterator[Source]:
    """Read the passages of a corpus with titles and topics, in order."""
    lines: dict[str, int] = {}
    for number, row in iter_objects(path):
        doc_id = _tsv_id(path, number, row, ID_KEYS)
        what = f"passage '{doc_id[:80]}'"
        first = lines.setdefault(doc_id, number)
        if first != number:
            raise ConversionError(path, number, f"{what} occurs twice, first on line {first}")
        more = [row.get(key) or "" for key in ("title", "topic")]
        for key, value in zip(("title", "topic"), more, strict=True):
            if not isinstance(value, str):
                raise ConversionError(path, number, f'"{key}" of {what} is not text')
        yield Source(doc_id, a_text(path, number, row, TEXT_KEYS, what), *more)
