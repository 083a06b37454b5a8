"""`trecexam ragval questions`: questions about knowledge blocks, written by a model for the bank."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

from converters.bank_lines import scan_bank
from converters.errors import ConversionError
from converters.lines import iter_objects
from trecexam.config import TrackConfig
from trecexam.errors import TrecexamError
from trecexam.extensions.ragval.formats.knowledge import (
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
    Kept,
    PromptSet,
    Reply,
    read_replies,
    unread_reasons,
)
from trecexam.graders.writing.base import Writer
from trecexam.graders.writing.create import create_writer, keeping_writers
from trecexam.inputs.missing_banks import check_unchanged, read_target

#: Default temperature, so that questions differ.
TEMPERATURE, SEED = 1.0, 0


@dataclass(frozen=True, kw_only=True)
class Questions(AskingResult[str]):
    """Result of writing questions; complete if each block has an answer, readable or not.

    Attributes:
        output: bank.questions.jsonl of the track; `unread_file` has answers that are no questions.
        questions: new ones in the file; `n_existing` counts requested ones that the file had already.
        duplicates: number of dropped blocks, which occur earlier in the file.
        rejected: lines of the file that are no blocks.
        cut: number of truncated blocks.
        unread: reason -> number of unreadable answers.
        unwritten: block_id -> reason for no answer.
    """

    output: Path
    unread_file: Path
    questions: int
    n_existing: int
    duplicates: int
    rejected: tuple[ConversionError, ...]
    cut: int
    unread: dict[str, int]


def questions_job(
    folder: TrackFolder, blocks: Path | str | None = None, *, per_block: int = 1
) -> Job[Questions]:
    """Write questions about knowledge blocks with a language model, like `ragval questions`.

    Each block and seed gets a question unless the file has it; unreadable answers go to another file.
    """
    names = [blocks] if blocks else [folder.root / name for name in ("blocks.jsonl", "blocks.jsonl.gz")]
    source = next((path for path in map(Path, names) if blocks or path.exists()), None)
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
    have, texts = _questions_there(target) if content.strip() else (set(), set())
    rejected: list[ConversionError] = []
    blocks_read = list(read_blocks(source, rejected.append))
    if rejected and not blocks_read:
        raise rejected[0]
    once: dict[str, Block] = {}
    for block in blocks_read:
        once.setdefault(block.block_id, block)
    writers = _writers(folder.config, folder.root, per_block)
    lacking = [[key for key in once if (key, writer.seed) not in have] for writer in writers]
    # The writers differ only in their seeds.
    fitted = {key: about(once[key], writers[0]) for key in dict.fromkeys(chain(*lacking))}
    prompts = [
        PromptSet.of_fitted(source, {key: fitted[key] for key in keys})
        for source, keys in zip(keeping_writers(folder, *writers), lacking, strict=True)
    ]

    def read(block_id: str, reply: Kept) -> str | Unread:
        question = read_question(reply.text, cut=reply.cut)
        if isinstance(question, Unread):
            return question
        key = block_id, question.casefold()
        if key in texts:
            return Unread("the block has this question already")
        texts.add(key)
        return question

    def write(result: AskingResult[str]) -> Questions:
        order = {block_id: number for number, block_id in enumerate(once)}
        replies = sorted(read_replies(prompts, read), key=lambda reply: order[reply.key])
        lines: list[bytes] = []
        failed: list[bytes] = []
        for reply in replies:
            if isinstance(reply.record, Unread):
                row = {"block_id": reply.key, "seed": reply.writer.seed, "reason": reply.record.reason}
                failed.append(line_of({**row, "raw": reply.kept.text}))
            else:
                lines.append(line_of(_row(once[reply.key], reply.record, reply, known_ids)))
        unread_file = target.with_name("questions.unread.jsonl")
        if replies:
            check_unchanged(target, content)
            contents = {unread_file: b"".join(failed)}
            if lines:
                end = b"\n" * (bool(content) and not content.endswith(b"\n"))
                contents[target] = b"".join([content, end, *lines])
            replace_together(contents)
        return result.made(
            Questions,
            output=target,
            unread_file=unread_file,
            questions=len(lines),
            n_existing=len(once) * per_block - sum(len(each.prompts) for each in prompts),
            duplicates=len(blocks_read) - len(once),
            rejected=tuple(rejected),
            cut=len(frozenset().union(*(each.cut for each in prompts))),
            unread=unread_reasons(replies),
        )

    return Job(prompts, write)


def _writers(config: TrackConfig, root: Path, number: int) -> list[Writer]:
    """Return writers for a block's questions: the model of [generator] with consecutive seeds."""
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


def _questions_there(path: Path) -> tuple[set[tuple[str, int | None]], set[tuple[str, str]]]:
    """Return (block_id, seed) of a model's questions in the file, and (block_id, text) of all questions."""
    seeds: set[tuple[str, int | None]] = set()
    texts: set[tuple[str, str]] = set()
    for number, row in iter_objects(path):
        if not has_question(row):
            continue
        block_id = block_id_of(path, number, row)
        texts.add((block_id, row["question"].casefold()))
        if isinstance(row.get("origin"), dict):
            seeds.add((block_id, row["origin"].get("seed")))
            # Texts before a person's edit must not come again.
            texts.add((block_id, str(row["origin"].get("text", "")).casefold()))
    return seeds, texts


def _row(block: Block, question: str, reply: Reply[str, str], known_ids: set[str]) -> dict[str, Any]:
    ids = (f"{block.block_id}/{number}" for number in count(1))
    question_id = next(each for each in ids if each not in known_ids)
    known_ids.add(question_id)
    named = {"question_id": question_id, "question": question}
    return {
        # These keys come first, whatever the block has.
        **named,
        **block.row,
        **named,
        "block_id": block.block_id,
        "content": block.content,
        "origin": reply.origin(display_name("question"), text=question),
    }
