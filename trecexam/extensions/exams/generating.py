"""`trecexam exam generate`: a question about each passage, written by a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from converters.fields import made_id
from trecexam.errors import TrecexamError
from trecexam.extensions.exams.exam_file import ExamQuestion, Source, exam_line, read_sources
from trecexam.extensions.exams.questions.reading import Read, read_question, shuffled
from trecexam.files.atomic import replace_together, sha256
from trecexam.files.kept import read_object
from trecexam.folder import TrackFolder
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import (
    AskingResult,
    Job,
    PromptSet,
    Reply,
    read_replies,
    unread_reasons,
)
from trecexam.graders.writing.create import keeping_writers
from trecexam.results.table import to_json
from trecexam.templates import filled

#: The published prompt (ICML 2024), stored with each question.
PROMPT = "mcq-generation"
#: Suffixes of files beside the exam: metadata of the generation, and unreadable answers.
_GENERATION, _UNREAD = ".generation.json", ".unread.jsonl"
#: Seed for the order of the candidates.
_SEED = 0


@dataclass(frozen=True, kw_only=True)
class GeneratedExam(AskingResult[str]):
    """Result of generating an exam; complete if each passage has an answer, readable or not.

    Attributes:
        output, unread_file: file of the exam, and file of unreadable answers.
        questions: questions in the order of the passages.
        badly_parsed: reason -> number of unreadable answers.
        unwritten: doc_id -> reason for no answer.
    """

    output: Path
    unread_file: Path
    questions: tuple[ExamQuestion, ...]
    badly_parsed: Mapping[str, int]


def exam_job(
    folder: TrackFolder, task_domain: str, *, output: Path | str | None = None
) -> Job[GeneratedExam]:
    """Return the job of writing a question about each passage, like `exam generate`.

    Without a readable answer no exam is written, and an existing file stays.
    """
    passages = folder.passages()
    exam = folder.root / "exam.jsonl" if output is None else Path(output)
    if passages is None:
        raise TrecexamError("no passages: put passages.jsonl here", path=folder.root)
    if exam.suffix == ".gz":
        raise TrecexamError("is compressed and could not be edited: give another name with -o", path=exam)
    sources = {source.doc_id: source for source in read_sources(passages)}
    if exam.exists():
        _check_ours(exam)
    (source,) = keeping_writers(folder)
    plain = source.writer.plain
    prompts = PromptSet(
        source, {doc_id: _prompt(each, task_domain, plain) for doc_id, each in sources.items()}
    )

    def write(result: AskingResult[str]) -> GeneratedExam:
        replies = [*read_replies([prompts], lambda _, reply: read_question(reply.text, cut=reply.cut))]
        questions = tuple(
            _question(sources[each.key], each, each.record)
            for each in replies
            if not isinstance(each.record, Unread)
        )
        badly_parsed = unread_reasons(replies)
        unread_file = _beside(exam, _UNREAD)
        contents = {
            unread_file: b"".join(
                exam_line({"doc_id": each.key, "reason": each.record.reason, "raw": each.kept.text})
                for each in replies
                if isinstance(each.record, Unread)
            )
        }
        if questions:
            contents[exam] = b"".join(exam_line(question.row()) for question in questions)
            noted = {
                "generated": len(replies),
                "badly_parsed": badly_parsed,
                "passages": len(sources),
                "task_domain": task_domain,
                "prompt": PROMPT,
                "model": source.writer.model,
                "seed": source.writer.seed,
                "shuffle_seed": _SEED,
                "exam_sha256": sha256(contents[exam]),
            }
            # Written last, since this file marks the exam as generated.
            contents[_beside(exam, _GENERATION)] = to_json(noted).encode()
        if replies:
            replace_together(contents)
        return result.made(
            GeneratedExam,
            output=exam,
            unread_file=unread_file,
            questions=questions,
            badly_parsed=badly_parsed,
        )

    return Job([prompts], write)


def _prompt(source: Source, task_domain: str, plain: Callable[[str], str]) -> str:
    """Return the prompt for one passage, without control tokens. A title is a line before the passage."""
    documentation = f"{source.title}\n{source.text}" if source.title else source.text
    values = {"task_domain": plain(task_domain), "documentation": plain(documentation)}
    return filled(_published(), values, jinja=False, name=PROMPT)


@cache
def _published() -> str:
    """Return the published text, including its literal braces."""
    path = Path(__file__).parent / "questions" / "texts" / f"{PROMPT}.txt"
    return path.read_text(encoding="utf-8").removesuffix("\n")


def _beside(exam: Path, ending: str) -> Path:
    """Return the file with this ending next to an exam file."""
    return exam.with_name(exam.name.split(".jsonl")[0] + ending)


def _check_ours(exam: Path) -> None:
    """Raise a TrecexamError for an edited exam."""
    if sha256(exam.read_bytes()) != read_object(_beside(exam, _GENERATION)).get("exam_sha256"):
        raise TrecexamError(
            "was edited, or not written by `exam generate`, and was not changed: give another name with -o",
            path=exam,
        )


def _question(source: Source, reply: Reply[str, Read], read: Read) -> ExamQuestion:
    question, order = shuffled(read, _SEED, source.doc_id)
    return ExamQuestion(
        made_id(source.doc_id, question.question),
        question.question,
        question.choices,
        question.correct,
        source.doc_id,
        source.text,
        source.topic,
        {
            **({"title": source.title} if source.title else {}),
            "raw": reply.kept.text,
            "shuffle": {"seed": _SEED, "order": list(order)},
            "origin": reply.origin(PROMPT),
        },
    )
