"""`trecexam ragval questions`: has a model write questions about knowledge blocks, for the bank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from converters.bank_lines import scan_bank
from converters.errors import ConversionError
from converters.lines import iter_objects
from trecexam.config import TrackConfig
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval.formats.knowledge import (
    ID_KEYS,
    Block,
    block_id_of,
    has_question,
    line_of,
    read_blocks,
)
from trecexam.extensions.ragval.knowledge.prompts import named
from trecexam.extensions.ragval.knowledge.reading import read_question
from trecexam.files.atomic import replace_together
from trecexam.folder import TrackFolder
from trecexam.graders.replies import Unread
from trecexam.graders.writing.asking import Ask, AskingResult, Job, PromptSet
from trecexam.graders.writing.base import Fitted, Writer
from trecexam.graders.writing.create import create_writer, keeping_writers
from trecexam.graders.writing.kept_answers import KeepingWriter, Kept
from trecexam.inputs.missing_banks import check_unchanged, lines_of, read_target

#: Where [generator] says nothing else: questions are to differ.
TEMPERATURE, SEED = 1.0, 0
#: What lines of answers and judgments have, and a question has not.
_NOT_OURS = (
    *(key for key in ID_KEYS if key != "block_id"),
    *("question_id", "question", "origin", "retired", "answer", "run_id", "retrieved", "context", "status"),
    *("n_input_tokens", "n_output_tokens", "truthfulness", "relevance"),
)


class QuestionRequest(NamedTuple):
    """A question to write: a block, and the index of the writer."""

    block: Block
    place: int


@dataclass(frozen=True)
class QuestionPlan:
    """The requested questions and the output files.

    Attributes:
        requests: in the order of the blocks; those that the file has already are not among them.
        output: bank.questions.jsonl of the track; `content` is what it holds now.
        known_ids: of questions that the bank has.
        texts: (block_id, text) of the questions that the file has.
        there: how many more questions were asked for, which the file had.
        duplicates: blocks that are dropped, since they stand in the file of blocks before.
        rejected: lines of it that are no blocks.
    """

    requests: tuple[QuestionRequest, ...]
    output: Path
    content: bytes
    known_ids: frozenset[str]
    texts: frozenset[tuple[str, str]]
    there: int
    duplicates: int
    rejected: tuple[ConversionError, ...]

    @property
    def unread_file(self) -> Path:
        """The file for unreadable answers, next to the bank."""
        return self.output.with_name("questions.unread.jsonl")


@dataclass(frozen=True, kw_only=True)
class Questions(AskingResult[str]):
    """Result of writing questions; complete if each block has an answer, readable or not.

    Attributes:
        questions: new ones in the file.
        cut: blocks that were asked about without their end.
        unread: why answers are no questions, and how many.
        unwritten: by block_id.
    """

    plan: QuestionPlan
    questions: int
    cut: int
    unread: dict[str, int]


def questions_job(
    folder: TrackFolder, blocks: Path | str | None = None, *, per_block: int = 1
) -> Job[Questions]:
    """Writes questions about knowledge blocks with a language model, like `ragval questions`."""
    writers = _writers(folder.config, folder.root, per_block)
    plan = _plan(folder, None if blocks is None else Path(blocks), [writer.seed for writer in writers])
    prompts = _prompts(plan, keeping_writers(folder, *writers))
    return Job(partial(_write_questions, plan, prompts), lambda: prompts)


def _writers(config: TrackConfig, root: Path, number: int) -> list[Writer]:
    """A writer per question of a block: the model of [generator] with temperature and consecutive seeds."""
    generator = config.generator
    first = SEED if generator.seed is None else generator.seed
    heat = {} if "temperature" in generator.model_fields_set else {"temperature": TEMPERATURE}
    return [
        create_writer(
            config.model_copy(
                update={"generator": generator.model_copy(update={**heat, "seed": first + seed_index})}
            ),
            root,
        )
        for seed_index in range(number)
    ]


def _plan(folder: TrackFolder, blocks: Path | None, seeds: Sequence[int | None]) -> QuestionPlan:
    """Plans a question for each block and seed that the file lacks."""
    source = blocks or next(
        (path for name in ("blocks.jsonl", "blocks.jsonl.gz") if (path := folder.root / name).exists()), None
    )
    if source is None:
        raise TrecexamError(
            "no knowledge blocks: put blocks.jsonl here, or give --blocks F", path=folder.root
        )
    target = folder.root / "bank.questions.jsonl"
    content = read_target(folder, target)
    known_ids: set[str] = set()
    for path in {*folder.bank(optional=True), *([target] if content.strip() else [])}:
        for line in scan_bank(path):
            if line.error is not None:
                raise line.error
            known_ids.add(line.query_id)
    have, texts = _questions_there(target) if content.strip() else (frozenset(), frozenset())
    rejected: list[ConversionError] = []
    blocks_read = tuple(read_blocks(source, rejected.append))
    if rejected and not blocks_read:
        raise rejected[0]
    once: dict[str, Block] = {}
    for block in blocks_read:
        once.setdefault(block.block_id, block)
    all_requests = [
        QuestionRequest(block, seed_index) for block in once.values() for seed_index in range(len(seeds))
    ]
    requests = tuple(
        request for request in all_requests if (request.block.block_id, seeds[request.place]) not in have
    )
    return QuestionPlan(
        requests,
        target,
        content,
        frozenset(known_ids),
        texts,
        len(all_requests) - len(requests),
        len(blocks_read) - len(once),
        tuple(rejected),
    )


def _questions_there(path: Path) -> tuple[frozenset[tuple[str, int | None]], frozenset[tuple[str, str]]]:
    """(block_id, seed) of the questions that a model wrote and the file has, and (block_id, text) of all."""
    seeds, texts = set(), set()
    for number, row in iter_objects(path):
        if not has_question(row):
            continue
        block_id = block_id_of(path, number, row)
        texts.add((block_id, row["question"].casefold()))
        if isinstance(row.get("origin"), dict):
            seeds.add((block_id, row["origin"].get("seed")))
            # What it was before a person edited it is not to come again.
            texts.add((block_id, str(row["origin"].get("text", "")).casefold()))
    return frozenset(seeds), frozenset(texts)


def _prompts(plan: QuestionPlan, writers: Sequence[KeepingWriter]) -> list[PromptSet[str]]:
    """The prompts of each writer, by block_id."""
    fitted: dict[str, Fitted] = {}
    by_writer: list[dict[str, Fitted]] = [{} for _ in writers]
    for block, seed_index in plan.requests:
        # The writers differ in their seeds alone.
        if block.block_id not in fitted:
            fitted[block.block_id] = named("question").about(block, writers[0].writer)
        by_writer[seed_index][block.block_id] = fitted[block.block_id]
    return [PromptSet.of_fitted(*each) for each in zip(writers, by_writer, strict=True)]


def _write_questions(plan: QuestionPlan, prompts: Sequence[PromptSet[str]], ask: Ask) -> Questions:
    """Calls the model for the blocks, and writes all questions to the file at the end."""
    try:
        result: AskingResult[str] = ask(prompts)
    except TrecexamError:
        _write(plan, prompts)
        raise
    questions, unread = _write(plan, prompts)
    cut = len(frozenset().union(*(each.cut for each in prompts)))
    return Questions(
        asked=result.asked,
        reused=result.reused,
        unwritten=result.unwritten,
        used=result.used,
        cost=result.cost,
        why=result.why,
        plan=plan,
        questions=questions,
        cut=cut,
        unread=unread,
    )


def _write(plan: QuestionPlan, prompts: Sequence[PromptSet[str]]) -> tuple[int, dict[str, int]]:
    """Writes the file; returns the number of new questions, and reasons for unusable answers."""
    known_ids, texts = set(plan.known_ids), set(plan.texts)
    answered = [dict(each.answered()) for each in prompts]
    lines: list[bytes] = []
    failed: list[dict[str, Any]] = []
    for block, seed_index in plan.requests:
        answer = answered[seed_index].get(block.block_id)
        if answer is None:
            continue
        writer = prompts[seed_index].source.writer
        question = read_question(answer.text, cut=answer.cut)
        if isinstance(question, str):
            key = block.block_id, question.casefold()
            question = Unread("the block has this question already") if key in texts else question
            texts.add(key)
        if isinstance(question, Unread):
            failed.append(
                {
                    "block_id": block.block_id,
                    "seed": writer.seed,
                    "reason": question.reason,
                    "raw": answer.text,
                }
            )
        else:
            lines.append(line_of(_row(plan, writer, block, question, answer, known_ids)))
    if not lines and not failed:
        return 0, {}
    check_unchanged(plan.output, plan.content)
    before = lines_of(plan.content)
    if lines and before and not before[-1].endswith(b"\n"):
        before[-1] += b"\n"
    contents = {plan.unread_file: b"".join(map(line_of, failed))}
    if lines:
        contents[plan.output] = b"".join([*before, *lines])
    replace_together(contents)
    return len(lines), dict(Counter(row["reason"] for row in failed).most_common())


def _row(
    plan: QuestionPlan, writer: Writer, block: Block, question: str, answer: Kept, known_ids: set[str]
) -> dict[str, Any]:
    number = 1
    while f"{block.block_id}/{number}" in known_ids:
        number += 1
    question_id = f"{block.block_id}/{number}"
    known_ids.add(question_id)
    return {
        "question_id": question_id,
        "question": question,
        **{key: value for key, value in block.row.items() if key not in (*_NOT_OURS, "content", "text")},
        "block_id": block.block_id,
        "content": block.content,
        "origin": {
            "prompt": named("question").name,
            "model": writer.model,
            "seed": writer.seed,
            "time": answer.time,
            "text": question,
        },
    }
