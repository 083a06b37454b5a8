"""`trecexam exam generate --again`: rewrites wrong candidates that fail the filters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.extensions.exams.exam_file import ExamQuestion, exam_line
from trecexam.extensions.exams.filtering import GENERATION, companion_file, filter_exam
from trecexam.extensions.exams.generating import REFILLED, check_ours, exam_path, noted_refilling
from trecexam.extensions.exams.questions.distractors import (
    CandidateLimits,
    can_be_mended,
    prompt,
    read_candidates,
    refilled,
)
from trecexam.extensions.exams.settings import ExamSection
from trecexam.files.atomic import replace_together, sha256
from trecexam.files.kept import read_object
from trecexam.graders.writing import Writer, keeping_writers
from trecexam.graders.writing.asking import AskingResult, Job, PromptSet, Rounds
from trecexam.graders.writing.kept_answers import KeepingWriter
from trecexam.tables.table import to_json
from trecexam.track import TrackFolder

#: Attempts per question; each prompt names the candidates that failed before.
_ROUNDS = 3


@dataclass(frozen=True)
class RefillPlan:
    """An exam, and the questions that need new wrong candidates.

    Attributes:
        failing: by question_id, those that fail by their wrong candidates alone.
        hopeless: how many questions fail in other ways, too.
    """

    exam: Path
    questions: tuple[ExamQuestion, ...]
    failing: Mapping[str, ExamQuestion]
    hopeless: int
    limits: CandidateLimits
    task_domain: str


@dataclass(frozen=True, kw_only=True)
class RefilledExam(AskingResult[str]):
    """Result of rewriting candidates; `unwritten` is by question_id.

    Attributes:
        failing: the questions that were asked about, and `refilled` those that pass now.
        hopeless: as in the plan.
    """

    output: Path
    failing: tuple[str, ...]
    refilled: tuple[str, ...]
    hopeless: int


def refilling_job(
    folder: TrackFolder, task_domain: str, *, output: Path | str | None = None
) -> Job[RefilledExam]:
    """Rewrites wrong candidates that fail the filters with a model, like `exam generate --again`.

    An estimate is of the first round.

    Args:
        task_domain: what the passages are of.
        output: the exam; None for exam.jsonl in the track's folder.

    Raises:
        TrecexamError, ConversionError: there is no exam, somebody edited it, it cannot be filtered, or no
            model can be asked.
    """
    exam, settings = exam_path(folder, output), folder.config.section(ExamSection)
    if not exam.exists():
        raise TrecexamError("no exam here yet: run `exam generate` without --again", path=exam)
    check_ours(exam)
    filtered = filter_exam(exam, settings, folder.root)
    limits = CandidateLimits.of(filtered.filtered, settings, filtered.embed)
    questions = filtered.filtered.questions
    failing = {
        question.question_id: question
        for question_index, question in enumerate(questions)
        if can_be_mended(question, filtered.filtered.reasons(question_index), limits)
    }
    hopeless = len(questions) - sum(filtered.stays) - len(failing)
    plan = RefillPlan(exam, questions, failing, hopeless, limits, task_domain)
    return Job(refill(plan, *keeping_writers(folder)))


def _prompts(
    plan: RefillPlan, source: KeepingWriter, refused: Mapping[str, tuple[str, ...]] | None
) -> PromptSet[str]:
    """The prompts of the model about each failing question, by question_id.

    Args:
        refused: question_id -> what it wrote before that would not do; only these are sent. None: all.
    """
    prompts = {
        question_id: prompt(
            question, plan.limits.failing(question), (refused or {}).get(question_id, ()), plan.task_domain,
            source.writer.plain,
        )
        for question_id, question in plan.failing.items()
        if refused is None or question_id in refused
    }  # fmt: skip
    return PromptSet(source, prompts)


def refill(plan: RefillPlan, source: KeepingWriter) -> Rounds[RefilledExam]:
    """Writes the exam with new candidates that pass the filters. Other questions keep their bytes.

    Raises:
        TrecexamError: the files cannot be written.
    """
    passing: dict[str, ExamQuestion] = {}
    refused: dict[str, tuple[str, ...]] | None = None
    result: AskingResult[str] | None = None
    for _ in range(_ROUNDS):
        prompts = _prompts(plan, source, refused)
        try:
            of_round: AskingResult[str] = yield [prompts]
        except TrecexamError:
            _write(plan, passing)
            raise
        result = of_round.after(result)
        before, refused = refused or {}, {}
        for question_id, answer in prompts.answered():
            offered = (*before.get(question_id, ()), *read_candidates(answer.text, cut=answer.cut))
            question = refilled(plan.failing[question_id], offered, plan.limits)
            if question is None:
                refused[question_id] = tuple(dict.fromkeys(offered))
            else:
                passing[question_id] = _noted(plan.failing[question_id], question, source.writer, answer.time)
        if not refused or not of_round.complete:
            break
    assert result is not None
    _write(plan, passing)
    return RefilledExam(
        **vars(result),
        output=plan.exam,
        failing=tuple(plan.failing),
        refilled=tuple(passing),
        hopeless=plan.hopeless,
    )


def _noted(old: ExamQuestion, new: ExamQuestion, writer: Writer, time: str) -> ExamQuestion:
    """The rewritten question with its former candidates and its model."""
    changed = {
        str(choice_index): choice
        for choice_index, (choice, other) in enumerate(zip(old.choices, new.choices, strict=True))
        if choice != other
    }
    earlier = old.rest.get(REFILLED)
    note = {"was": changed, "model": writer.model, "seed": writer.seed, "time": time}
    notes = [*(earlier if isinstance(earlier, list) else []), note]
    return replace(new, rest={**new.rest, REFILLED: notes})


def _write(plan: RefillPlan, passing: Mapping[str, ExamQuestion]) -> None:
    if not passing:
        return
    questions = [passing.get(question.question_id, question) for question in plan.questions]
    exam = b"".join(exam_line(question.row()) for question in questions)
    noted = {
        name: value
        for name, value in read_object(companion_file(plan.exam, GENERATION)).items()
        if name != REFILLED
    }
    noted.pop("exam_sha256", None)
    noted |= {**noted_refilling(questions), "exam_sha256": sha256(exam)}
    replace_together({plan.exam: exam, companion_file(plan.exam, GENERATION): to_json(noted).encode()})
