"""`trecexam exam generate`: has a model write a question about each passage, and reads its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from converters.fields import made_id
from trecexam.errors import TrecexamError
from trecexam.extensions.exams.exam_file import ExamQuestion, Source, exam_line, read_sources
from trecexam.extensions.exams.filtering import GENERATION, companion_file
from trecexam.extensions.exams.questions import prompts as published
from trecexam.extensions.exams.questions.reading import read_question, shuffled
from trecexam.files.atomic import replace_together, sha256
from trecexam.files.kept import read_object
from trecexam.folder import TrackFolder
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import Ask, AskingResult, Job, PromptSet
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.create import keeping_writers
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept
from trecexam.results.table import to_json

#: The ending of the file of answers that are not questions.
UNREAD = ".unread.jsonl"
#: Of the order of the candidates.
_SEED = 0


@dataclass(frozen=True)
class ExamPlan:
    """The prompts to send.

    Attributes:
        output: the exam's file; what cannot be read goes beside it.
    """

    sources: tuple[Source, ...]
    task_domain: str
    output: Path


@dataclass(frozen=True, kw_only=True)
class GeneratedExam(AskingResult[str]):
    """Result of generating an exam; complete if each passage has an answer, readable or not.

    Attributes:
        questions: in the order of the passages.
        badly_parsed: why answers are no questions, and how many.
        unwritten: by doc_id.
    """

    output: Path
    questions: tuple[ExamQuestion, ...]
    badly_parsed: Mapping[str, int]


def exam_job(
    folder: TrackFolder, task_domain: str, *, output: Path | str | None = None
) -> Job[GeneratedExam]:
    """Writes a question about each passage with a language model, like `exam generate`."""
    passages = folder.passages()
    exam = folder.root / "exam.jsonl" if output is None else Path(output)
    if passages is None:
        raise TrecexamError("no passages: put passages.jsonl here", path=folder.root)
    if exam.suffix == ".gz":
        raise TrecexamError("is compressed and could not be edited: give another name with -o", path=exam)
    sources = tuple(read_sources(passages))
    if exam.exists():
        _check_ours(exam)
    plan = ExamPlan(sources, task_domain, exam)
    prompts = _prompts(plan, *keeping_writers(folder))
    return Job(partial(generate, plan, prompts), lambda: [prompts])


def _prompts(plan: ExamPlan, source: KeepingWriter) -> PromptSet[str]:
    plain = source.writer.plain
    return PromptSet(
        source, {each.doc_id: published.prompt(each, plan.task_domain, plain) for each in plan.sources}
    )


def _check_ours(exam: Path) -> None:
    """Raises an error for an edited exam.

    Raises:
        TrecexamError: it is not as `exam generate` left it.
    """
    if sha256(exam.read_bytes()) != read_object(companion_file(exam, GENERATION)).get("exam_sha256"):
        raise TrecexamError(
            "was edited, or not written by `exam generate`, and was not changed: give another name with -o",
            path=exam,
        )


def generate(plan: ExamPlan, prompts: PromptSet[str], ask: Ask) -> GeneratedExam:
    """Calls the model for each passage, and writes the exam from all answers.

    Without one readable answer the exam is not written: a file that is there stays.

    Raises:
        TrecexamError: the files cannot be written.
    """
    try:
        result = ask([prompts])
    except TrecexamError:
        _write(plan, prompts)
        raise
    questions, badly_parsed = _write(plan, prompts)
    return GeneratedExam(
        asked=result.asked,
        reused=result.reused,
        unwritten=result.unwritten,
        used=result.used,
        cost=result.cost,
        why=result.why,
        output=plan.output,
        questions=questions,
        badly_parsed=badly_parsed,
    )


def _write(plan: ExamPlan, prompts: PromptSet[str]) -> tuple[tuple[ExamQuestion, ...], dict[str, int]]:
    """Writes the questions; counts the reasons why other answers cannot be used."""
    writer = prompts.source.writer
    sources = {source.doc_id: source for source in plan.sources}
    questions: list[ExamQuestion] = []
    failed: list[tuple[str, str, Kept]] = []
    for doc_id, answer in prompts.answered():
        question = _question(writer, sources[doc_id], answer)
        if isinstance(question, Unread):
            failed.append((doc_id, question.reason, answer))
        else:
            questions.append(question)
    if not questions and not failed:
        return (), {}
    badly_parsed = dict(Counter(reason for _, reason, _ in failed).most_common())
    unread_answers = {
        companion_file(plan.output, UNREAD): b"".join(
            exam_line({"doc_id": doc_id, "reason": reason, "raw": answer.text})
            for doc_id, reason, answer in failed
        )
    }
    if not questions:
        replace_together(unread_answers)
        return (), badly_parsed
    exam = b"".join(exam_line(question.row()) for question in questions)
    noted = {
        "generated": len(questions) + len(failed),
        "badly_parsed": badly_parsed,
        "passages": len(plan.sources),
        "task_domain": plan.task_domain,
        "prompt": published.NAME,
        "model": writer.model,
        "seed": writer.seed,
        "shuffle_seed": _SEED,
        "exam_sha256": sha256(exam),
    }
    replace_together(
        {
            plan.output: exam,
            **unread_answers,
            # Written last, because it marks the exam as ours.
            companion_file(plan.output, GENERATION): to_json(noted).encode(),
        }
    )
    return tuple(questions), badly_parsed


def _question(writer: Writer, source: Source, answer: Kept) -> ExamQuestion | Unread:
    read = read_question(answer.text, cut=answer.cut)
    if isinstance(read, Unread):
        return read
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
            "raw": answer.text,
            "shuffle": {"seed": _SEED, "order": list(order)},
            "origin": {
                "prompt": published.NAME,
                "model": writer.model,
                "seed": writer.seed,
                "time": answer.time,
            },
        },
    )
