"""`trecexam exam generate`: has a model write a question about each passage, and keeps what can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from converters.exam import ExamQuestion, Source, exam_line, read_sources
from converters.fields import made_id
from trecexam.errors import TrecexamError
from trecexam.features.exams.filtering import GENERATION
from trecexam.features.exams.questions.prompts import QuestionPrompt
from trecexam.features.exams.questions.reading import Unread, read_question, shuffled
from trecexam.files.atomic import replace_together, sha256
from trecexam.graders.base import Estimate, Usage
from trecexam.graders.writing import Writer
from trecexam.graders.writing.asking import ask_all, unanswered
from trecexam.graders.writing.kept_answers import Kept, KeptAnswers
from trecexam.tables.table import to_json


@dataclass(frozen=True)
class ExamPlan:
    """What is to be asked.

    Attributes:
        output: the exam's file; what cannot be read goes beside it.
        shuffle_seed: of the order of the candidates.
        min_question: characters that a stem has at least.
    """

    sources: tuple[Source, ...]
    prompt: QuestionPrompt
    task_domain: str
    output: Path
    shuffle_seed: int
    min_question: int

    def prompts(self, writer: Writer) -> dict[Source, str]:
        """What the model is asked about each passage."""
        return {source: self.prompt.text(source, self.task_domain, writer.plain) for source in self.sources}


@dataclass(frozen=True)
class GeneratedExam:
    """What came of it.

    Attributes:
        asked: prompts that the model answered now; `reused` those that it had answered before.
        questions: in the order of the passages.
        badly_parsed: why answers are no questions, and how many.
        unwritten: (doc_id, why) of passages that the model wrote nothing to.
        used, cost: what it took now, and the money where prices are set.
        why: why it ended early, "" where it did not.
    """

    output: Path
    asked: int
    reused: int
    questions: tuple[ExamQuestion, ...]
    badly_parsed: Mapping[str, int]
    unwritten: tuple[tuple[str, str], ...]
    used: Usage
    cost: float | None
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether every passage was asked about; not whether every answer could be read."""
        return not self.unwritten and not self.why


def plan(
    passages: Path,
    prompt: QuestionPrompt,
    task_domain: str,
    output: Path,
    *,
    shuffle_seed: int = 0,
    min_question: int = 50,
    limit: int | None = None,
) -> ExamPlan:
    """What is to be asked about a corpus, or about its first passages.

    Raises:
        ConversionError: the passages cannot be read.
        TrecexamError: somebody edited the exam that is there already, or its name ends in .gz.
    """
    if output.suffix == ".gz":
        raise TrecexamError("is compressed, and could not be edited: give -o another name", path=output)
    sources = tuple(read_sources(passages))[:limit]
    if output.exists() and sha256(output.read_bytes()) != _written(output):
        raise TrecexamError(
            "was edited, or not written by `exam generate`, and is left as it is: give -o another name",
            path=output,
        )
    return ExamPlan(sources, prompt, task_domain, output, shuffle_seed, min_question)


def estimate(plan: ExamPlan, writer: Writer, answers: KeptAnswers) -> Estimate:
    """What it would take; prompts that were answered before take nothing. Asks nobody."""
    return writer.estimate(unanswered(plan.prompts(writer).values(), answers), answers.used)


def generate(
    plan: ExamPlan,
    writer: Writer,
    answers: KeptAnswers,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> GeneratedExam:
    """Asks, reads, and writes the exam, from all answers that there are.

    Each answer is kept as it comes: what is killed goes on where it was, and asks nothing twice.

    Raises:
        GraderError: the model cannot be asked at all. What it had answered is kept, and in the file.
        TrecexamError: the files cannot be written.
    """
    texts = plan.prompts(writer)
    asked = ask_all(
        writer, texts.values(), answers, progress, stop, lambda: _write(plan, writer, texts, answers)
    )
    questions, badly_parsed = _write(plan, writer, texts, answers)
    return GeneratedExam(
        plan.output,
        asked.new,
        asked.reused,
        questions,
        badly_parsed,
        tuple(
            (source.doc_id, f"the model {asked.unwritten[text]}")
            for source, text in texts.items()
            if text in asked.unwritten
        ),
        writer.used,
        writer.cost(writer.used),
        asked.why,
    )


def _write(
    plan: ExamPlan, writer: Writer, texts: Mapping[Source, str], answers: KeptAnswers
) -> tuple[tuple[ExamQuestion, ...], dict[str, int]]:
    questions: list[ExamQuestion] = []
    failed: list[tuple[Source, str, Kept]] = []
    for source, text in texts.items():
        kept = answers.get(text)
        if kept is None:
            continue
        found = _question(plan, writer, source, kept)
        if isinstance(found, Unread):
            reason = f"{found.reason} (cut: raise `max_new_tokens`)" if kept.cut else found.reason
            failed.append((source, reason, kept))
        else:
            questions.append(found)
    if not questions and not failed:
        return (), {}
    badly_parsed = dict(Counter(reason for _, reason, _ in failed).most_common())
    exam = b"".join(exam_line(question.row()) for question in questions)
    noted = {
        "generated": len(questions) + len(failed),
        "badly_parsed": badly_parsed,
        "passages": len(plan.sources),
        "task_domain": plan.task_domain,
        "prompt": plan.prompt.name,
        "model": writer.model,
        "seed": writer.seed,
        "shuffle_seed": plan.shuffle_seed,
        "exam_sha256": sha256(exam),
    }
    replace_together(
        {
            plan.output: exam,
            _beside(plan.output, ".unread.jsonl"): b"".join(
                exam_line({"doc_id": source.doc_id, "reason": reason, "raw": kept.text})
                for source, reason, kept in failed
            ),
            # Last: with it the exam is known as ours.
            _beside(plan.output, GENERATION): to_json(noted).encode(),
        }
    )
    return tuple(questions), badly_parsed


def _question(plan: ExamPlan, writer: Writer, source: Source, kept: Kept) -> ExamQuestion | Unread:
    read = read_question(kept.text, min_question=plan.min_question)
    if isinstance(read, Unread):
        return read
    found, order = shuffled(read, plan.shuffle_seed, source.doc_id)
    return ExamQuestion(
        made_id(source.doc_id, found.question),
        found.question,
        found.choices,
        found.correct,
        source.doc_id,
        source.text,
        source.topic,
        {
            **({"title": source.title} if source.title else {}),
            "raw": kept.text,
            "shuffle": {"seed": plan.shuffle_seed, "order": list(order)},
            "origin": {
                "prompt": plan.prompt.name,
                "model": writer.model,
                "seed": writer.seed,
                "time": kept.time,
            },
        },
    )


def _beside(output: Path, ending: str) -> Path:
    return output.with_name(output.name.split(".jsonl")[0] + ending)


def _written(output: Path) -> str:
    """The digest of the exam that was written last; "" where none was."""
    try:
        found = orjson.loads(_beside(output, GENERATION).read_bytes())
        return str(found["exam_sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
