"""`trecexam ragval answers`: the two bounds, a model's answers to the questions alone and with the block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from converters.knowledge import TRUTHFULNESS, line_of
from converters.records import Item
from trecexam.errors import TrecexamError
from trecexam.features.ragval.knowledge.prompts import BlockPrompt, named
from trecexam.features.ragval.prompting import question_prompt
from trecexam.files.atomic import replace_together, sha256
from trecexam.files.memory import recall, remember
from trecexam.graders.base import Estimate, Usage
from trecexam.graders.writing import Writer
from trecexam.graders.writing.asking import ask_all, unanswered
from trecexam.graders.writing.kept_answers import Kept, KeptAnswers
from trecexam.graders.writing.thoughts import without_thoughts
from trecexam.line.inputs import InputReader
from trecexam.track import TrackFolder

#: The bounds, which are the runs' names: without the block, and with it.
Bound = Literal["closed-book", "oracle"]
BOUNDS: tuple[Bound, ...] = ("closed-book", "oracle")


@dataclass(frozen=True)
class AnswerPlan:
    """What is to be answered.

    Attributes:
        questions: an item of each question of the bank; its answer key is the block.
    """

    folder: TrackFolder
    bounds: tuple[Bound, ...]
    questions: tuple[Item, ...]


@dataclass(frozen=True)
class Answered:
    """One bound.

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


@dataclass(frozen=True)
class Answers:
    """What came of it.

    Attributes:
        used, cost: what it took now, and the money where prices are set.
        why: why it ended early, "" where it did not.
    """

    bounds: tuple[Answered, ...]
    used: Usage
    cost: float | None
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether every question has an answer."""
        return not self.why and not any(one.unwritten for one in self.bounds)


def plan(folder: TrackFolder, bounds: Sequence[Bound]) -> AnswerPlan:
    """What is to be answered: all questions of the bank, but for retired ones.

    Raises:
        ConversionError: the bank cannot be read.
        TrecexamError: it has no questions with their blocks, or a file is there that is not ours.
    """
    bank = InputReader(folder).whole_bank(folder.bank())
    questions = tuple(item for items in bank.items.values() for item in items if item.kind == TRUTHFULNESS)
    if not questions:
        raise TrecexamError(
            "the bank has no questions with their knowledge blocks: `trecexam ragval questions` writes them",
            path=folder.root,
        )
    written = recall(_memory(folder))
    for bound in bounds:
        path = _path(folder, bound)
        if path.exists() and written.get(bound) != sha256(path.read_bytes()):
            raise TrecexamError(
                "was edited, or not written by `ragval answers`, and is left as it is: move it away",
                path=path,
            )
    return AnswerPlan(folder, tuple(bounds), questions)


def estimate(plan: AnswerPlan, writer: Writer, answers: KeptAnswers) -> Estimate:
    """What it would take; prompts that were answered before take nothing. Asks nobody."""
    prompts = [text for bound in plan.bounds for text in _prompts(plan, bound, writer)[0].values()]
    return writer.estimate(unanswered(prompts, answers), answers.used)


def answer(
    plan: AnswerPlan,
    writer: Writer,
    answers: KeptAnswers,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Answers:
    """Asks, and writes runs/closed-book.jsonl and runs/oracle.jsonl.

    Each answer is kept as it comes: what is killed goes on where it was, and asks nothing twice.

    Raises:
        GraderError: the model cannot be asked at all. What it had answered is kept, and in the files.
        TrecexamError: a file cannot be written.
    """
    prompts = {bound: _prompts(plan, bound, writer) for bound in plan.bounds}
    texts = [text for found, _ in prompts.values() for text in found.values()]
    missing = unanswered(texts, answers)

    def save() -> None:
        for bound in plan.bounds:
            _write(plan, bound, prompts[bound][0], writer, answers)

    asked = ask_all(writer, texts, answers, progress, stop, save)
    bounds = tuple(
        Answered(
            _path(plan.folder, bound),
            sum(answers.get(text) is not None for text in {*missing} & {*found.values()}),
            len({*found.values()} - {*missing}),
            _write(plan, bound, found, writer, answers),
            cut,
            tuple(
                (question_id, f"the model {asked.unwritten[text]}")
                for question_id, text in found.items()
                if text in asked.unwritten
            ),
        )
        for bound, (found, cut) in prompts.items()
    )
    return Answers(bounds, writer.used, writer.cost(writer.used), asked.why)


def _path(folder: TrackFolder, bound: Bound) -> Path:
    return folder.runs / f"{bound}.jsonl"


def _prompts(plan: AnswerPlan, bound: Bound, writer: Writer) -> tuple[dict[str, str], int]:
    """What is asked for each question, and how many blocks are cut."""
    prompt = named(bound)
    # A server does not say how much its model takes; the judge's block is cut there, too.
    most = plan.folder.config.grader.max_characters if writer.meter is not None else None
    fitted = {
        item.query_id: question_prompt(prompt, item.text, item.gold_answers[0], writer, most)
        for item in plan.questions
    }
    return {key: each.prompt for key, each in fitted.items()}, sum(each.cut for each in fitted.values())


def _write(
    plan: AnswerPlan,
    bound: Bound,
    prompts: Mapping[str, str],
    writer: Writer,
    answers: KeptAnswers,
) -> int:
    """How many answers the file has now."""
    prompt = named(bound)
    lines = [
        line_of(_row(item.query_id, item.text, bound, kept, prompt, writer))
        for item in plan.questions
        if (kept := answers.get(prompts[item.query_id])) is not None
    ]
    if lines:
        content = b"".join(lines)
        replace_together({_path(plan.folder, bound): content})
        memory = _memory(plan.folder)
        remember(memory, {**recall(memory), bound: sha256(content)})
    return len(lines)


def _row(
    question_id: str, question: str, bound: Bound, kept: Kept, prompt: BlockPrompt, writer: Writer
) -> dict[str, Any]:
    return {
        "question_id": question_id,
        "run_id": bound,
        "question": question,
        # Thoughts without an end are no answer.
        "answer": (without_thoughts(kept.text) or "").strip(),
        "n_input_tokens": kept.tokens_in,
        "n_output_tokens": kept.tokens_out,
        "origin": {
            "prompt": prompt.name,
            "model": writer.model,
            "seed": writer.seed,
            "time": kept.time,
            "cut": kept.cut,
        },
    }


def _memory(folder: TrackFolder) -> Path:
    return folder.state / "ragval-answers.json"
