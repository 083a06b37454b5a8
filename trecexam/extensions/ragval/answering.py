"""`trecexam ragval answers`: the two bounds, a model's answers without and with the block."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from converters.records import Item
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval.formats.knowledge import TRUTHFULNESS, line_of
from trecexam.extensions.ragval.knowledge.prompts import BlockPrompt, named
from trecexam.files.atomic import replace_together, sha256
from trecexam.files.kept import recall, remember
from trecexam.folder import TrackFolder
from trecexam.graders.replies import read_reply
from trecexam.graders.writing.asking import Ask, AskingResult, Job, PromptSet
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.create import keeping_writers
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept
from trecexam.inputs.inputs import whole_bank

#: The bounds, which are the runs' names: without the block, and with it.
Bound = Literal["closed-book", "oracle"]
BOUNDS: tuple[Bound, ...] = ("closed-book", "oracle")


@dataclass(frozen=True)
class AnswerPlan:
    """The questions to answer.

    Attributes:
        questions: an item of each question of the bank; its answer key is the block.
    """

    folder: TrackFolder
    questions: tuple[Item, ...]


@dataclass(frozen=True)
class BoundAnswers:
    """The answers of a bound.

    Attributes:
        asked: prompts that the model answered now; `reused` those that it had answered before.
        answers: lines in the file.
        cut: blocks that were given without their end.
        unwritten: (question_id, why) of questions that the model wrote nothing to.
    """

    path: Path
    asked: int
    reused: int
    answers: int
    cut: int
    unwritten: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Answers(AskingResult[tuple[Bound, str]]):
    """Result of answering, in total and by bound; keys are (bound, question_id)."""

    bounds: tuple[BoundAnswers, ...]


def answers_job(folder: TrackFolder) -> Job[Answers]:
    """Answers the bank's questions with a language model, as bounds, like `ragval answers`."""
    plan = _plan(folder)
    prompts = _prompts(plan, *keeping_writers(folder))
    return Job(partial(_answer, plan, prompts), lambda: [prompts])


def _plan(folder: TrackFolder) -> AnswerPlan:
    """The questions to answer: all of the bank except retired ones."""
    bank = whole_bank(folder, folder.bank())
    questions = tuple(item for items in bank.items.values() for item in items if item.kind == TRUTHFULNESS)
    if not questions:
        raise TrecexamError(
            "the bank has no questions with knowledge blocks: write them with `trecexam ragval questions`",
            path=folder.root,
        )
    digests = recall(_memory(folder))
    for bound in BOUNDS:
        path = _path(folder, bound)
        if path.exists() and digests.get(bound) != sha256(path.read_bytes()):
            raise TrecexamError(
                "was edited, or not written by `ragval answers`, and was not changed: move it away",
                path=path,
            )
    return AnswerPlan(folder, questions)


def _prompts(plan: AnswerPlan, source: KeepingWriter) -> PromptSet[tuple[Bound, str]]:
    """The prompts for each bound and question."""
    writer = source.writer
    # A server does not say how much its model takes; the judge's block is cut there, too.
    most = plan.folder.config.grader.max_characters if writer.meter is not None else None
    fitted = {
        (bound, item.query_id): named(bound).asking(item.text, item.gold_answers[0], writer, most)
        for bound in BOUNDS
        for item in plan.questions
    }
    return PromptSet.of_fitted(source, fitted)


def _answer(plan: AnswerPlan, prompts: PromptSet[tuple[Bound, str]], ask: Ask) -> Answers:
    """Calls the model, and writes runs/closed-book.jsonl and runs/oracle.jsonl."""
    before = {*prompts.unanswered()}
    try:
        result: AskingResult[tuple[Bound, str]] = ask([prompts])
    except TrecexamError:
        _write_all(plan, prompts)
        raise
    lines = _write_all(plan, prompts)
    new = before - {*prompts.unanswered()}
    question_prompts = {
        bound: {prompts.prompts[bound, item.query_id] for item in plan.questions} for bound in BOUNDS
    }
    bounds = tuple(
        BoundAnswers(
            _path(plan.folder, bound),
            asked=len(question_prompts[bound] & new),
            reused=len(question_prompts[bound] - before),
            answers=lines[bound],
            cut=sum(cut == bound for cut, _ in prompts.cut),
            unwritten=tuple(
                (question_id, why) for (each, question_id), why in result.unwritten if each == bound
            ),
        )
        for bound in BOUNDS
    )
    return Answers(
        asked=result.asked,
        reused=result.reused,
        unwritten=result.unwritten,
        used=result.used,
        cost=result.cost,
        why=result.why,
        bounds=bounds,
    )


def _path(folder: TrackFolder, bound: Bound) -> Path:
    return folder.runs / f"{bound}.jsonl"


def _write_all(plan: AnswerPlan, prompts: PromptSet[tuple[Bound, str]]) -> dict[Bound, int]:
    """Writes all files; returns the number of answers in each."""
    return {bound: _write(plan, bound, prompts) for bound in BOUNDS}


def _write(plan: AnswerPlan, bound: Bound, prompts: PromptSet[tuple[Bound, str]]) -> int:
    """Writes a file; returns its number of answers."""
    texts = {item.query_id: item.text for item in plan.questions}
    prompt = named(bound)
    lines = [
        line_of(_row(question_id, texts[question_id], bound, answer, prompt, prompts.source.writer))
        for (each, question_id), answer in prompts.answered()
        if each == bound
    ]
    if lines:
        content = b"".join(lines)
        replace_together({_path(plan.folder, bound): content})
        memory = _memory(plan.folder)
        remember(memory, {**recall(memory), bound: sha256(content)})
    return len(lines)


def _row(
    question_id: str, question: str, bound: Bound, answer: Kept, prompt: BlockPrompt, writer: Writer
) -> dict[str, Any]:
    return {
        "question_id": question_id,
        "run_id": bound,
        "question": question,
        # Thoughts without an end are no answer.
        "answer": read_reply(answer.text).text,
        "n_input_tokens": answer.tokens_in,
        "n_output_tokens": answer.tokens_out,
        "origin": {
            "prompt": prompt.name,
            "model": writer.model,
            "seed": writer.seed,
            "time": answer.time,
            "cut": answer.cut,
        },
    }


def _memory(folder: TrackFolder) -> Path:
    return folder.state / "ragval-answers.json"
