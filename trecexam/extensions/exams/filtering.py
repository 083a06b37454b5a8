"""`trecexam exam filter`: removal of questions from an exam, with reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trecexam.extensions.exams.exam_file import ExamQuestion, exam_line, read_exam
from trecexam.extensions.exams.questions.words import bloom_levels, question_type
from trecexam.files.atomic import replace_together
from trecexam.results.result import Result
from trecexam.results.table import Table, to_tsv
from trecexam.results.text import plural

#: What `write_filtered` writes.
FILES = ("kept.jsonl", "dropped.jsonl", "groups.tsv", "queries.tsv")
_PATTERNS = Path(__file__).parent / "questions" / "texts" / "self-contained.txt"


@dataclass(frozen=True)
class FilteredExam(Result):
    """An exam and its dropped questions.

    Attributes:
        questions: all questions, in order.
        reasons: index of a dropped question -> reason.
        notes: numbers of questions before and after.
    """

    path: Path
    questions: tuple[ExamQuestion, ...]
    reasons: Mapping[int, str]
    notes: tuple[str, ...] = ()

    @property
    def kept(self) -> list[ExamQuestion]:
        """The kept questions."""
        return [each for number, each in enumerate(self.questions) if number not in self.reasons]

    def _declare(self) -> dict[str, Table]:
        """`reasons`, a row per dropped question; `groups`, the kept questions by level, type and topic."""
        rows = ((self.questions[n].question_id, reason) for n, reason in self.reasons.items())
        return {"reasons": Table(("question_id", "reason"), tuple(rows)), "groups": self.groups()}

    @property
    def facts(self) -> dict[str, Any]:
        """The numbers of all, dropped and kept questions."""
        return {
            "exam": self.path.name,
            "questions": len(self.questions),
            "dropped": len(self.reasons),
            "kept": len(self.kept),
        }

    def groups(self) -> Table:
        """Return the kept questions by level, type and topic, in the format of `exam fit --groups`."""
        topics = any(question.topic for question in self.kept)
        rows = tuple(
            (
                each.question_id,
                "|".join(bloom_levels(each.question)),
                question_type(each.question),
                *([each.topic.replace("|", "/")] if topics else []),
            )
            for each in self.kept
        )
        return Table(("item", "bloom", "question_type", *(["topic"] if topics else [])), rows)


def filter_exam(path: Path | str) -> FilteredExam:
    """Filter an exam; write nothing.

    Raises:
        ConversionError: a line of the exam is no question.
    """
    path = Path(path)
    questions = tuple(read_exam(path))
    reasons = not_self_contained(questions)
    n_kept = len(questions) - len(reasons)
    note = f"{plural(len(questions), 'question')}: {len(reasons):,} dropped, {n_kept:,} kept"
    return FilteredExam(path, questions, reasons, (note,))


def write_filtered(exam: FilteredExam, folder: Path) -> None:
    """Write kept.jsonl, dropped.jsonl, groups.tsv and queries.tsv, all of them or none."""
    dropped = ({**exam.questions[n].row(), "reason": reason} for n, reason in exam.reasons.items())
    # Kept stems serve as queries of runs for `exam score`.
    queries = "".join(f"{each.question_id}\t{' '.join(each.question.split())}\n" for each in exam.kept)
    contents = (
        b"".join(exam_line(each.row()) for each in exam.kept),
        b"".join(map(exam_line, dropped)),
        to_tsv(exam.groups()).encode(),
        queries.encode(errors="replace"),
    )
    replace_together({folder / name: content for name, content in zip(FILES, contents, strict=True)})


def read_patterns(path: Path) -> list[re.Pattern[str]]:
    """Read regular expressions from a file, one per line; lines that begin with # are comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    patterns = (line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return [re.compile(pattern, re.IGNORECASE) for pattern in patterns]


def not_self_contained(questions: Sequence[ExamQuestion]) -> dict[int, str]:
    """Return index -> reason for dropping, for questions whose stem refers to the source text."""
    patterns = read_patterns(_PATTERNS)
    reasons: dict[int, str] = {}
    for question_index, question in enumerate(questions):
        # Treat typographic quotes like plain quotes.
        stem = re.sub("[\u201c\u201d]", '"', question.question)
        match = next(filter(None, (pattern.search(stem) for pattern in patterns)), None)
        if match:
            reasons[question_index] = f"refers to the text that it was made from: '{match[0]}'"
    return reasons
