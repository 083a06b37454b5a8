"""`trecexam ragval questions`: has a model write questions about knowledge blocks, for the bank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from converters.bank_lines import scan_bank
from converters.errors import ConversionError
from converters.knowledge import ID_KEYS, Block, block_id_of, has_question, line_of
from converters.lines import iter_objects
from trecexam.bank.lines import lines_of
from trecexam.config import TrackConfig
from trecexam.errors import TrecexamError
from trecexam.features.ragval.filtering import some_blocks
from trecexam.features.ragval.knowledge.prompts import MOST_CHARACTERS, BlockPrompt
from trecexam.features.ragval.knowledge.reading import Unread, read_question
from trecexam.features.ragval.prompting import block_prompt
from trecexam.files.atomic import replace_together
from trecexam.graders.base import Estimate, UngradedError, Usage
from trecexam.graders.writing import Writer, create_writer
from trecexam.graders.writing.asking import ask
from trecexam.graders.writing.kept_answers import Kept, KeptAnswers
from trecexam.line.bank_target import check_target
from trecexam.track import TrackFolder

#: Where [generator] says nothing else: questions are to differ.
TEMPERATURE, SEED = 1.0, 0
#: What lines of answers and judgments have, and a question has not.
_NOT_OURS = (
    *(key for key in ID_KEYS if key != "block_id"),
    *("question_id", "question", "origin", "retired", "answer", "run_id", "retrieved", "context", "status"),
    *("n_input_tokens", "n_output_tokens", "truthfulness", "relevance"),
)


class Wanted(NamedTuple):
    """A question to be written: about a block, by the writer of this place."""

    block: Block
    place: int


@dataclass(frozen=True)
class QuestionPlan:
    """What is to be asked, and where it goes.

    Attributes:
        wanted: in the order of the blocks; those that the file has already are not among them.
        output: a file of the track's bank; `content` is what it holds now.
        taken: ids of questions that the bank has.
        texts: (block_id, text) of the questions that the file has.
        there: how many of the wanted questions the file had.
        twice: blocks that stand again in the file of blocks.
        rejected: lines of it that are no blocks.
    """

    wanted: tuple[Wanted, ...]
    prompt: BlockPrompt
    output: Path
    content: bytes
    taken: frozenset[str]
    texts: frozenset[tuple[str, str]]
    there: int
    twice: int
    rejected: tuple[ConversionError, ...]


@dataclass(frozen=True)
class Questions:
    """What came of it.

    Attributes:
        asked: prompts that the model answered now; `reused` those that it had answered before.
        questions: new ones in the file.
        cut: blocks that were asked about without their end.
        unread: why answers are no questions, and how many.
        unwritten: (block_id, why) of blocks that the model wrote nothing to.
        used, cost: what it took now, and the money where prices are set.
        why: why it ended early, "" where it did not.
    """

    plan: QuestionPlan
    asked: int
    reused: int
    questions: int
    cut: int
    unread: dict[str, int]
    unwritten: tuple[tuple[str, str], ...]
    used: Usage
    cost: float | None
    why: str = ""

    @property
    def complete(self) -> bool:
        """Whether every block was asked about; not whether every answer is a question."""
        return not self.unwritten and not self.why


@dataclass
class _Asked:
    """The prompts of one writer, by block_id."""

    writer: Writer
    answers: KeptAnswers
    prompts: dict[str, str] = field(default_factory=dict)

    def missing(self) -> list[str]:
        return [text for text in dict.fromkeys(self.prompts.values()) if self.answers.get(text) is None]


def question_writers(config: TrackConfig, root: Path, number: int, seed: int | None) -> list[Writer]:
    """A writer for each question of a block: the model of [generator], hot, with seeds that count up.

    Args:
        seed: of the first; None for that of [generator], or 0.

    Raises:
        GraderError: none is named, or it cannot run here.
    """
    own = config.generator
    first = seed if seed is not None else own.seed if own.seed is not None else SEED
    heat = {} if "temperature" in own.model_fields_set else {"temperature": TEMPERATURE}
    return [
        create_writer(
            config.model_copy(update={"generator": own.model_copy(update={**heat, "seed": first + place})}),
            root,
        )
        for place in range(number)
    ]


def plan(
    folder: TrackFolder,
    blocks: Path | None,
    prompt: BlockPrompt,
    seeds: Sequence[int | None],
    *,
    output: Path | None = None,
    limit: int | None = None,
) -> QuestionPlan:
    """What is to be asked: for each block and seed, unless the file has a question of these.

    Args:
        blocks: None for blocks.jsonl or blocks.jsonl.gz of the track.
        output: None for bank.questions.jsonl of the track.
        limit: of the first blocks alone.

    Raises:
        ConversionError: the blocks or the bank cannot be read.
        TrecexamError: there are no blocks, or the output would not be a file of the bank.
    """
    source = blocks or next(
        (path for name in ("blocks.jsonl", "blocks.jsonl.gz") if (path := folder.root / name).exists()), None
    )
    if source is None:
        raise TrecexamError(
            "no knowledge blocks: put blocks.jsonl here, or give --blocks F", path=folder.root
        )
    target = folder.root / "bank.questions.jsonl" if output is None else output
    check_target(folder, target)
    # Before it is looked at: an edit in between is then seen when it is written.
    content = b""
    with suppress(OSError):
        content = target.read_bytes()
    known: set[str] = set()
    for path in {*folder.bank(optional=True), *([target] if content.strip() else [])}:
        for line in scan_bank(path):
            if line.error is not None:
                raise line.error
            known.add(line.query_id)
    have, texts = _written(target) if content.strip() else (frozenset(), frozenset())
    found, rejected = some_blocks(source)
    once = list({block.block_id: block for block in reversed(found)}.values())[::-1][:limit]
    wanted = [Wanted(block, place) for block in once for place in range(len(seeds))]
    missing = tuple(one for one in wanted if (one.block.block_id, seeds[one.place]) not in have)
    return QuestionPlan(
        missing,
        prompt,
        target,
        content,
        frozenset(known),
        texts,
        len(wanted) - len(missing),
        len(found) - len({block.block_id for block in found}),
        rejected,
    )


def _written(path: Path) -> tuple[frozenset[tuple[str, int | None]], frozenset[tuple[str, str]]]:
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


def estimate(plan: QuestionPlan, writers: Sequence[Writer], answers: Sequence[KeptAnswers]) -> Estimate:
    """What it would take; prompts that were answered before take nothing. Asks nobody."""
    asked, _ = _asked(plan, writers, answers)
    before = _used(answers)
    each = [one.writer.estimate(one.missing(), before) for one in asked]
    sums = [None if None in column else sum(column) for column in zip(*each, strict=True)]
    return Estimate._make(sums)


def write_questions(
    plan: QuestionPlan,
    writers: Sequence[Writer],
    answers: Sequence[KeptAnswers],
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Questions:
    """Asks, reads, and adds the questions to the file, which is written once, at the end.

    Each answer is kept as it comes: what is killed goes on where it was, and asks nothing twice.

    Raises:
        GraderError: the model cannot be asked at all. What it had answered is kept, and in the file.
        TrecexamError: the file was changed meanwhile, or cannot be written.
    """
    asked, cut = _asked(plan, writers, answers)
    missing = [one.missing() for one in asked]
    total, done = sum(map(len, missing)), 0
    unwritten: list[dict[str, str]] = [{} for _ in asked]
    why = ""

    def shown(now: int, _: int) -> None:
        if progress is not None:
            progress(done + now, total)

    try:
        for one, prompts, failed in zip(asked, missing, unwritten, strict=True):
            before = _used(answers)
            for _ in ask(one.writer, prompts, one.answers, failed, shown, stop, before):
                pass
            done += len(prompts)
    except UngradedError as error:
        why = error.reason
    except TrecexamError:
        # What was paid for goes into the file, whatever ended it.
        _write(plan, asked)
        raise
    if not why and stop is not None and stop():
        why = "stopped"
    questions, unread = _write(plan, asked)
    used = Usage()
    for one in asked:
        used = used.plus(one.writer.used)
    new = sum(
        one.answers.get(text) is not None for one, texts in zip(asked, missing, strict=True) for text in texts
    )
    return Questions(
        plan,
        new,
        sum(len(set(one.prompts.values())) for one in asked) - total,
        questions,
        cut,
        unread,
        tuple(
            (block_id, f"the model {failed[text]}")
            for one, failed in zip(asked, unwritten, strict=True)
            for block_id, text in one.prompts.items()
            if text in failed
        ),
        used,
        asked[0].writer.cost(used),
        why,
    )


def _used(answers: Sequence[KeptAnswers]) -> Usage:
    """What all writers used so far."""
    total = Usage()
    for one in answers:
        total = total.plus(one.used)
    return total


def _asked(
    plan: QuestionPlan, writers: Sequence[Writer], answers: Sequence[KeptAnswers]
) -> tuple[list[_Asked], int]:
    """What each writer is asked, and how many blocks are cut."""
    asked = [_Asked(writer, kept) for writer, kept in zip(writers, answers, strict=True)]
    fitted: dict[str, tuple[str, bool]] = {}
    for wanted in plan.wanted:
        block = wanted.block
        # The writers differ in their seeds alone.
        if block.block_id not in fitted:
            fitted[block.block_id] = block_prompt(plan.prompt, block, writers[0], MOST_CHARACTERS)
        asked[wanted.place].prompts[block.block_id] = fitted[block.block_id][0]
    return asked, sum(cut for _, cut in fitted.values())


def _write(plan: QuestionPlan, asked: Sequence[_Asked]) -> tuple[int, dict[str, int]]:
    """How many questions are new in the file, and why other answers are none."""
    taken, texts = set(plan.taken), set(plan.texts)
    lines: list[bytes] = []
    failed: list[dict[str, Any]] = []
    for wanted in plan.wanted:
        one = asked[wanted.place]
        kept = one.answers.get(one.prompts[wanted.block.block_id])
        if kept is None:
            continue
        found = read_question(kept.text, cut=kept.cut)
        if isinstance(found, str):
            key = wanted.block.block_id, found.casefold()
            found = Unread("the block has this question") if key in texts else found
            texts.add(key)
        if isinstance(found, Unread):
            reason = f"{found.reason} (cut: raise `max_new_tokens`)" if kept.cut else found.reason
            failed.append(
                {
                    "block_id": wanted.block.block_id,
                    "seed": one.writer.seed,
                    "reason": reason,
                    "raw": kept.text,
                }
            )
        else:
            lines.append(line_of(_row(plan, one.writer, wanted.block, found, kept, taken)))
    if not lines and not failed:
        return 0, {}
    now = plan.output.read_bytes() if plan.output.exists() else b""
    if now != plan.content:
        raise TrecexamError(
            "was edited while the model was asked, and is left as it is; start again: the answers are kept "
            "and nothing is asked twice",
            path=plan.output,
        )
    before = lines_of(now)
    if lines and before and not before[-1].endswith(b"\n"):
        before[-1] += b"\n"
    contents = {unread_file(plan.output): b"".join(map(line_of, failed))}
    if lines:
        contents[plan.output] = b"".join([*before, *lines])
    replace_together(contents)
    return len(lines), dict(Counter(row["reason"] for row in failed).most_common())


def _row(
    plan: QuestionPlan, writer: Writer, block: Block, question: str, kept: Kept, taken: set[str]
) -> dict[str, Any]:
    number = 1
    while f"{block.block_id}/{number}" in taken:
        number += 1
    question_id = f"{block.block_id}/{number}"
    taken.add(question_id)
    return {
        "question_id": question_id,
        "question": question,
        **{key: value for key, value in block.row.items() if key not in (*_NOT_OURS, "content", "text")},
        "block_id": block.block_id,
        "content": block.content,
        "origin": {
            "prompt": plan.prompt.name,
            "model": writer.model,
            "seed": writer.seed,
            "time": kept.time,
            "text": question,
        },
    }


def unread_file(output: Path) -> Path:
    """Where answers go that are no questions: beside the bank, and no file of it."""
    return output.with_name(f"{output.name.removesuffix('.jsonl').removeprefix('bank.')}.unread.jsonl")
