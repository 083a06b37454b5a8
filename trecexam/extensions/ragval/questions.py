"""`trecexam ragval questions`: has a model write questions about knowledge blocks, for the bank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

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
from trecexam.extensions.ragval.knowledge.prompts import about, display_name
from trecexam.extensions.ragval.knowledge.reading import read_question
from trecexam.files.atomic import replace_together
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
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.create import create_writer, keeping_writers
from trecexam.graders.writing.kept_answers import Kept
from trecexam.inputs.missing_banks import check_unchanged, read_target

#: Where [generator] says nothing else: questions are to differ.
TEMPERATURE, SEED = 1.0, 0
#: What lines of answers and judgments have, and a question has not.
_NOT_OURS = (
    *(key for key in ID_KEYS if key != "block_id"),
    *("question_id", "question", "origin", "retired", "answer", "run_id", "retrieved", "context", "status"),
    *("n_input_tokens", "n_output_tokens", "truthfulness", "relevance"),
)


@dataclass(frozen=True)
class QuestionPlan:
    """The blocks to ask about, and the output files.

    Attributes:
        blocks: by id, in the order of their file; `requests` are (block_id, index of the writer) of the
            questions that are to be written: those that the file has already are not among them.
        output: bank.questions.jsonl of the track; `content` is what it holds now.
        known_ids: of questions that the bank has.
        texts: (block_id, text) of the questions that the file has.
        there: how many more questions were asked for, which the file had.
        duplicates: blocks that are dropped, since they stand in the file of blocks before.
        rejected: lines of it that are no blocks.
    """

    blocks: Mapping[str, Block]
    requests: tuple[tuple[str, int], ...]
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
    # The writers differ in their seeds alone.
    fitted = {
        block_id: about(plan.blocks[block_id], writers[0])
        for block_id in dict.fromkeys(block_id for block_id, _ in plan.requests)
    }
    prompts = [
        PromptSet.of_fitted(source, {key: fitted[key] for key, writer in plan.requests if writer == index})
        for index, source in enumerate(keeping_writers(folder, *writers))
    ]
    return Job(prompts, partial(_write, plan, prompts))


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
    every = [(block_id, index) for block_id in once for index in range(len(seeds))]
    requests = tuple((block_id, index) for block_id, index in every if (block_id, seeds[index]) not in have)
    return QuestionPlan(
        once,
        requests,
        target,
        content,
        frozenset(known_ids),
        texts,
        len(every) - len(requests),
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


def _write(plan: QuestionPlan, prompts: Sequence[PromptSet[str]], result: AskingResult[str]) -> Questions:
    """Writes the new questions to the end of the file, and answers that are none to another one."""
    known_ids, texts = set(plan.known_ids), set(plan.texts)

    def read(block_id: str, kept: Kept) -> str | Unread:
        question = read_question(kept.text, cut=kept.cut)
        if isinstance(question, Unread):
            return question
        key = block_id, question.casefold()
        if key in texts:
            return Unread("the block has this question already")
        texts.add(key)
        return question

    order = {block_id: number for number, block_id in enumerate(plan.blocks)}
    replies = sorted(read_replies(prompts, read), key=lambda reply: order[reply.key])
    lines: list[bytes] = []
    failed: list[bytes] = []
    for reply in replies:
        if isinstance(reply.record, Unread):
            row = {"block_id": reply.key, "seed": reply.writer.seed, "reason": reply.record.reason}
            failed.append(line_of({**row, "raw": reply.kept.text}))
        else:
            lines.append(line_of(_row(plan.blocks[reply.key], reply.record, reply, known_ids)))
    if replies:
        check_unchanged(plan.output, plan.content)
        contents = {plan.unread_file: b"".join(failed)}
        if lines:
            before = plan.content + b"\n" * (bool(plan.content) and not plan.content.endswith(b"\n"))
            contents[plan.output] = b"".join([before, *lines])
        replace_together(contents)
    return result.made(
        Questions,
        plan=plan,
        questions=len(lines),
        cut=len(frozenset().union(*(each.cut for each in prompts))),
        unread=unread_reasons(replies),
    )


def _row(block: Block, question: str, reply: Reply[str, str], known_ids: set[str]) -> dict[str, Any]:
    ids = (f"{block.block_id}/{number}" for number in count(1))
    question_id = next(each for each in ids if each not in known_ids)
    known_ids.add(question_id)
    return {
        "question_id": question_id,
        "question": question,
        **{key: value for key, value in block.row.items() if key not in (*_NOT_OURS, "content", "text")},
        "block_id": block.block_id,
        "content": block.content,
        "origin": reply.origin(display_name("question"), text=question),
    }
