"""`trecexam ragval filter`: which knowledge blocks are kept, and why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from converters.knowledge import Block, line_of, read_blocks
from trecexam.config import TrackConfig
from trecexam.errors import TrecexamError
from trecexam.features.ragval.knowledge.choosing import Conditions
from trecexam.features.ragval.knowledge.prompts import MOST_CHARACTERS, named
from trecexam.features.ragval.knowledge.reading import read_known
from trecexam.features.ragval.prompting import block_prompt
from trecexam.files.atomic import replace_together
from trecexam.graders.base import Estimate, Usage
from trecexam.graders.writing import Instruction, Writer, create_writer
from trecexam.graders.writing.asking import ask_all, unanswered
from trecexam.graders.writing.kept_answers import KeptAnswers
from trecexam.tables.table import Table, to_json

DUPLICATES, KNOWN = "duplicates", "known"
#: What a server's model is held to.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"known": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["known"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Knowing:
    """What a model said of the blocks that the other filters leave.

    Attributes:
        said: block_id -> whether it knows it; None where its answer could not be read.
        cut: blocks that were asked about without their end.
        unwritten: (block_id, why) of those that it wrote nothing to.
        asked, reused: answers that are new, and that were kept from earlier.
        why: why it ended early; "" where it did not.
    """

    said: Mapping[str, bool | None]
    cut: int
    unwritten: tuple[tuple[str, str], ...]
    asked: int
    reused: int
    used: Usage
    cost: float | None
    model: str
    why: str = ""


@dataclass(frozen=True)
class FilteredBlocks:
    """Blocks with what the filters found.

    Attributes:
        fails: of each block, the filters that it does not pass, and why of each.
        rejected: lines that are no blocks.
    """

    path: Path
    blocks: tuple[Block, ...]
    fails: tuple[Mapping[str, str], ...]
    conditions: Conditions
    knowing: Knowing | None = None
    rejected: tuple[ConversionError, ...] = ()

    @property
    def n_kept(self) -> int:
        """How many blocks are left."""
        return sum(not found for found in self.fails)

    def stats(self) -> dict[str, Any]:
        """Counts, in all and by filter."""
        dropped = Counter(name for found in self.fails for name in found)
        alone = Counter(next(iter(found)) for found in self.fails if len(found) == 1)
        names = [DUPLICATES, *self.conditions.names(), *([KNOWN] if self.knowing else [])]
        return {
            "blocks": len(self.blocks),
            "dropped": len(self.blocks) - self.n_kept,
            "kept": self.n_kept,
            "rejected": len(self.rejected),
            "filters": {name: {"dropped": dropped[name], "alone": alone[name]} for name in names},
            "known": None if self.knowing is None else _known_json(self.knowing),
        }

    def table(self) -> Table:
        """A line a filter: how many blocks it takes out, and how many no other one does."""
        rows = tuple((name, *counts.values()) for name, counts in self.stats()["filters"].items())
        return Table(("filter", "dropped", "alone"), rows)


def filter_blocks(path: Path, conditions: Conditions) -> FilteredBlocks:
    """Which blocks fulfil the conditions; asks no model, writes nothing. Of a block that stands twice, one.

    Raises:
        ConversionError: no line is a block.
    """
    blocks, rejected = some_blocks(path)
    first: dict[str, int] = {}
    fails = []
    for block in blocks:
        line = first.setdefault(block.block_id, block.number)
        twice = {} if line == block.number else {DUPLICATES: f"the same as line {line}"}
        fails.append({**twice, **conditions.fails(block.row)})
    return FilteredBlocks(path, blocks, tuple(fails), conditions, rejected=rejected)


def some_blocks(path: Path) -> tuple[tuple[Block, ...], tuple[ConversionError, ...]]:
    """The blocks of a file, and the lines that are none.

    Raises:
        ConversionError: no line is a block.
    """
    rejected: list[ConversionError] = []
    blocks = tuple(read_blocks(path, rejected.append))
    if rejected and not blocks:
        raise rejected[0]
    return blocks, tuple(rejected)


def knowing_writer(config: TrackConfig, root: Path, *, structured: bool = True) -> Writer:
    """The model of [generator] as one that says yes or no.

    Args:
        structured: hold a server's to a JSON schema.

    Raises:
        GraderError: none is named, or it cannot run here.
    """
    return create_writer(config, root, Instruction(schema=SCHEMA if structured else None))


def estimate(found: FilteredBlocks, writer: Writer, answers: KeptAnswers) -> Estimate:
    """What it would take to ask about the blocks that are left; asks nobody."""
    prompts, _ = _prompts(found, writer)
    return writer.estimate(unanswered(prompts.values(), answers), answers.used)


def without_known(
    found: FilteredBlocks,
    writer: Writer,
    answers: KeptAnswers,
    progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> FilteredBlocks:
    """Drops the blocks that the model says it knows. One whose answer cannot be read, or has none, stays.

    Raises:
        GraderError: the model cannot be asked at all; what it answered is kept.
    """
    prompts, cut = _prompts(found, writer)
    asked = ask_all(writer, prompts.values(), answers, progress, stop)
    said: dict[str, bool | None] = {}
    for block_id, prompt in prompts.items():
        kept = answers.get(prompt)
        if kept is not None:
            said[block_id] = read_known(kept.text)
    knowing = Knowing(
        said,
        cut,
        tuple(
            (each, f"the model {asked.unwritten[text]}")
            for each, text in prompts.items()
            if text in asked.unwritten
        ),
        asked.new,
        asked.reused,
        writer.used,
        writer.cost(writer.used),
        writer.model,
        asked.why,
    )
    fails = tuple(
        {KNOWN: f"{writer.model} says that it knows it"} if not fail and said.get(block.block_id) else fail
        for block, fail in zip(found.blocks, found.fails, strict=True)
    )
    return replace(found, fails=fails, knowing=knowing)


def write_filtered(found: FilteredBlocks, folder: Path, settings: Mapping[str, Any]) -> None:
    """Writes kept.jsonl, dropped.jsonl and stats.json, all of them or none.

    Raises:
        TrecexamError: they cannot be written, or the blocks would be overwritten.
    """
    kept, dropped = bytearray(), bytearray()
    for block, fail in zip(found.blocks, found.fails, strict=True):
        if fail:
            why = "; ".join(f"{name}: {text}" for name, text in fail.items())
            dropped += line_of({**block.row, "filters": list(fail), "reason": why})
        else:
            kept += line_of(block.row)
    contents = {
        folder / "kept.jsonl": bytes(kept),
        folder / "dropped.jsonl": bytes(dropped),
        folder / "stats.json": to_json(
            {"file": found.path.name, **found.stats(), "settings": settings}
        ).encode(),
    }
    if found.path.resolve() in {path.resolve() for path in contents}:
        raise TrecexamError("would be overwritten: give -o another folder", path=found.path)
    replace_together(contents)


def _prompts(found: FilteredBlocks, writer: Writer) -> tuple[dict[str, str], int]:
    """What is asked about each block that is left, and how many of them are cut."""
    prompt = named("known")
    fitted = {
        block.block_id: block_prompt(prompt, block, writer, MOST_CHARACTERS)
        for block, fail in zip(found.blocks, found.fails, strict=True)
        if not fail
    }
    return {key: each.prompt for key, each in fitted.items()}, sum(each.cut for each in fitted.values())


def _known_json(found: Knowing) -> dict[str, Any]:
    values: Sequence[bool | None] = list(found.said.values())
    return {
        "model": found.model,
        "yes": values.count(True),
        "no": values.count(False),
        "unparsed": values.count(None),
        "unanswered": len(found.unwritten),
        "blocks_cut": found.cut,
        "ended_early": found.why or None,
    }
