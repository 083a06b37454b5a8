"""`trecexam exam filter`: removes questions from an exam, and writes the rest and the reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trecexam.extensions.exams.exam_file import ExamQuestion, exam_line, read_exam
from trecexam.extensions.exams.questions.words import bloom_levels, question_type
from trecexam.files.atomic import replace_together
from trecexam.files.kept import read_object
from trecexam.results.result import Result
from trecexam.results.table import Table, to_tsv
from trecexam.results.text import plural

#: The ending of the file that `exam generate` writes next to an exam.
GENERATION = ".generation.json"
#: What `write_filtered` writes.
FILES = ("kept.jsonl", "dropped.jsonl", "groups.tsv", "queries.tsv")
_PATTERNS = Path(__file__).parent / "questions" / "texts" / "self-contained.txt"


@dataclass(frozen=True)
class FilteredExam(Result):
    """An exam and the questions that its filter drops.

    Attributes:
        questions: all, in their order.
        reasons: index of a dropped question -> why it is dropped.
        generation: how many answers were asked for and could not be read; empty where nobody noted it.
        notes: how many questions there were, and are left.
    """

    path: Path
    questions: tuple[ExamQuestion, ...]
    reasons: Mapping[int, str]
    generation: Mapping[str, Any]
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
        """The exam paper's counts: generated, badly parsed, dropped and kept questions."""
        return {
            "exam": self.path.name,
            "generated": self.generation.get("generated"),
            "badly_parsed": self.generation.get("badly_parsed"),
            "questions": len(self.questions),
            "dropped": len(self.reasons),
            "kept": len(self.kept),
        }

    def groups(self) -> Table:
        """The kept questions by level, type and topic, in the format of `exam fit --groups`."""
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
    """Filters an exam; writes nothing.

    Raises:
        ConversionError: a line of the exam is no question.
    """
    path = Path(path)
    questions = tuple(read_exam(path))
    generation = read_object(companion_file(path, GENERATION))
    exam = FilteredExam(path, questions, not_self_contained(questions), generation)
    return replace(exam, notes=tuple(_told(exam)))


def _told(exam: FilteredExam) -> Iterator[str]:
    facts = exam.facts
    if facts["generated"] is not None:
        bad = sum((facts["badly_parsed"] or {}).values())
        yield f"{plural(facts['generated'], 'question')} generated, {bad:,} badly parsed"
    yield f"{plural(facts['questions'], 'question')}: {facts['dropped']:,} dropped, {facts['kept']:,} kept"


def write_filtered(exam: FilteredExam, folder: Path) -> None:
    """Writes kept.jsonl, dropped.jsonl, groups.tsv and queries.tsv, all of them or none."""
    kept_lines, dropped_lines = bytearray(), bytearray()
    for question_index, question in enumerate(exam.questions):
        levels = list(bloom_levels(question.question))
        row = {**question.row(), "bloom": levels, "question_type": question_type(question.question)}
        if question_index in exam.reasons:
            dropped_lines += exam_line({**row, "reason": exam.reasons[question_index]})
        else:
            kept_lines += exam_line(row)
    contents = (
        bytes(kept_lines),
        bytes(dropped_lines),
        to_tsv(exam.groups()).encode(),
        _queries(exam).encode(errors="replace"),
    )
    replace_together({folder / name: content for name, content in zip(FILES, contents, strict=True)})


def _queries(exam: FilteredExam) -> str:
    """The kept stems as queries, to make runs for `exam score`."""
    return "".join(f"{each.question_id}\t{' '.join(each.question.split())}\n" for each in exam.kept)


def companion_file(exam: Path, ending: str) -> Path:
    """The file with this ending next to an exam file."""
    return exam.with_name(exam.name.split(".jsonl")[0] + ending)


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
