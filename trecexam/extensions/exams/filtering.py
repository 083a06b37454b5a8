"""`trecexam exam filter`: removes questions from an exam, and writes the rest and the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.exam_file import exam_line, read_exam
from trecexam.extensions.exams.questions.filters import Filtered, apply
from trecexam.extensions.exams.questions.statistics import QuestionKind, description, filter_counts
from trecexam.extensions.exams.settings import ExamSection
from trecexam.files.atomic import replace_together
from trecexam.files.kept import read_object
from trecexam.graders.embedding import EmbeddingGrader
from trecexam.graders.weights import model_folder, offline_folder
from trecexam.packages import install
from trecexam.tables.result import Result
from trecexam.tables.table import Table, to_json, to_tsv
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.extensions.exams.questions.similarity import Embed

#: The ending of the file that `exam generate` writes next to an exam.
GENERATION = ".generation.json"
#: What `write_filtered` writes.
FILES = ("kept.jsonl", "dropped.jsonl", "stats.json", "groups.tsv", "queries.tsv")
_EMBEDDING = ("extra-candidate-embedding", "intra-candidate-embedding")


@dataclass(frozen=True)
class FilteredExam(Result):
    """An exam with the results of its filters.

    Attributes:
        kinds: of each question, in their order.
        generation: how many answers were asked for and could not be read; empty where nobody noted it.
        embed: what the embedding filters compared with; None where they are not used.
        notes: how many questions there were, and are left; what one gets right by guessing.
    """

    path: Path
    filtered: Filtered
    kinds: tuple[QuestionKind, ...]
    settings: ExamSection
    generation: Mapping[str, Any]
    embed: Embed | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def stays(self) -> tuple[bool, ...]:
        """Whether each question is kept."""
        return tuple(not self.filtered.reasons(question_index) for question_index in range(len(self.kinds)))

    @cached_property
    def stats(self) -> dict[str, Any]:
        """The exam paper's table (generated, badly parsed, filtered, kept), and statistics of the rest."""
        questions = self.filtered.questions
        kinds = [kind for kind, stays in zip(self.kinds, self.stays, strict=True) if stays]
        return {
            "exam": self.path.name,
            "generated": self.generation.get("generated"),
            "badly_parsed": self.generation.get("badly_parsed"),
            "questions": len(questions),
            "dropped": len(questions) - len(kinds),
            "kept": len(kinds),
            "filters": filter_counts(self.filtered),
            "before": description(questions, self.kinds),
            "after": description(self.filtered.kept, kinds),
            "settings": self.settings.model_dump(),
        }

    def declare(self) -> dict[str, Table]:
        """`filters`, a row per filter; `groups`, the kept questions by level, type and topic."""
        return {"filters": self._filters(), "groups": self.groups()}

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of generated, parsed, dropped and kept questions, and their statistics."""
        return {name: value for name, value in self.stats.items() if name != "filters"}

    def _filters(self) -> Table:
        rows = (
            (name, counts["dropped"], counts["alone"], counts.get("threshold"))
            for name, counts in self.stats["filters"].items()
        )
        return Table(("filter", "dropped", "alone", "threshold"), tuple(rows))

    def groups(self) -> Table:
        """The kept questions by level, type and topic, in the format of `exam fit --groups`."""
        topics = any(question.topic for question in self.filtered.kept)
        rows = tuple(
            (
                question.question_id,
                "|".join(kind.bloom),
                kind.question_type,
                *([question.topic.replace("|", "/")] if topics else []),
            )
            for question, kind, stays in zip(self.filtered.questions, self.kinds, self.stays, strict=True)
            if stays
        )
        return Table(("item", "bloom", "question_type", *(["topic"] if topics else [])), rows)


def filter_exam(
    path: Path | str, settings: ExamSection | None = None, root: Path | None = None
) -> FilteredExam:
    """Applies the filters to an exam; writes nothing.

    Args:
        settings: as in [exam] of trecexam.toml; None for the defaults.
        root: what paths in the settings are relative to; None for where one is.

    Raises:
        ConversionError: a line of the exam is no question.
        TrecexamError: the embedding model is missing.
    """
    path, settings, root = Path(path), settings or ExamSection.model_validate({}), root or Path()
    questions = tuple(read_exam(path))
    compares = not set(_EMBEDDING) <= set(settings.without)
    embed = _embedder(settings.embedding, root) if settings.embedding is not None and compares else None
    filtered = apply(questions, settings, embed)
    kinds = tuple(QuestionKind.of(question) for question in questions)
    generation = read_object(companion_file(path, GENERATION))
    exam = FilteredExam(path, filtered, kinds, settings, generation, embed)
    return replace(exam, notes=tuple(_told(exam)))


def _told(exam: FilteredExam) -> Iterator[str]:
    stats = exam.stats
    if stats["generated"] is not None:
        bad = sum((stats["badly_parsed"] or {}).values())
        yield f"{plural(stats['generated'], 'question')} generated, {bad:,} badly parsed"
    if exam.settings.embedding is None:
        yield 'no sentence embeddings are compared (`embedding = "offline"` in [exam] does)'
    yield f"{plural(stats['questions'], 'question')}: {stats['dropped']:,} dropped, {stats['kept']:,} kept"
    if (after := stats["after"])["questions"]:
        fixed, longest = after["fixed_answer"], after["longest_answer"]
        yield (
            f"without knowing anything, {fixed['accuracy']:.1%} of these can be answered by always choosing "
            f"{fixed['letter']}, "
            f"{longest['accuracy']:.1%} by choosing the longest candidate"
        )


def write_filtered(exam: FilteredExam, folder: Path) -> None:
    """Writes kept.jsonl, dropped.jsonl, stats.json, groups.tsv and queries.tsv, all of them or none.

    Raises:
        TrecexamError: they cannot be written.
    """
    kept_lines, dropped_lines = bytearray(), bytearray()
    for question_index, (question, kind) in enumerate(zip(exam.filtered.questions, exam.kinds, strict=True)):
        row = {**question.row(), "bloom": list(kind.bloom), "question_type": kind.question_type}
        reasons = exam.filtered.reasons(question_index)
        if reasons:
            why = "; ".join(f"{name}: {text}" for name, text in reasons.items())
            dropped_lines += exam_line({**row, "filters": list(reasons), "reason": why})
        else:
            kept_lines += exam_line(row)
    contents = (
        bytes(kept_lines),
        bytes(dropped_lines),
        to_json(exam.stats).encode(),
        to_tsv(exam.groups()).encode(),
        _queries(exam).encode(errors="replace"),
    )
    replace_together({folder / name: content for name, content in zip(FILES, contents, strict=True)})


def _queries(exam: FilteredExam) -> str:
    """The kept stems as queries, to make runs for `exam score`."""
    return "".join(f"{each.question_id}\t{' '.join(each.question.split())}\n" for each in exam.filtered.kept)


def _embedder(model: str, root: Path) -> Embed:
    if model == "offline":
        folder = offline_folder()
        if folder is None:
            raise TrecexamError(f"the weights of `offline` are not here: {install('offline')}")
    else:
        how = "name a folder with a sentence-transformers model, a hub id that can be reached, or offline"
        folder = model_folder(model, None, root, "embedding", how)
    return EmbeddingGrader(folder).embed


def companion_file(exam: Path, ending: str) -> Path:
    """The file with this ending next to an exam file."""
    return exam.with_name(exam.name.split(".jsonl")[0] + ending)
