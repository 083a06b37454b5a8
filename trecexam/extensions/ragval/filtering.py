"""`trecexam ragval filter`: filters knowledge blocks, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from converters.errors import ConversionError
from trecexam.extensions.ragval.formats.knowledge import Block, line_of, read_blocks
from trecexam.extensions.ragval.knowledge.prompts import named
from trecexam.extensions.ragval.knowledge.reading import read_known
from trecexam.files.atomic import replace_together
from trecexam.graders.writing import Instruction, create_writer, keeping_writers
from trecexam.graders.writing.asking import AskingResult, Job, PromptSet, Rounds
from trecexam.graders.writing.kept_answers import KeepingWriter
from trecexam.tables.result import Result
from trecexam.tables.table import Table, to_json
from trecexam.track import TrackFolder

DUPLICATES, MISSING, UNREADABLE = "duplicates", "missing-date", "unreadable-date"
#: What `write_filtered` writes.
FILES = ("kept.jsonl", "dropped.jsonl", "stats.json")
AFTER, KNOWN = "after", "known"
#: What a server's model is held to.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"known": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["known"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Knowing(AskingResult[str]):
    """A model's answers on the blocks that pass the other filters; `unwritten` is by block_id.

    Attributes:
        answers: block_id -> whether it knows it; None where its answer could not be read.
        cut: blocks that were asked about without their end.
    """

    answers: Mapping[str, bool | None]
    cut: int
    model: str


@dataclass(frozen=True)
class FilteredBlocks(Result):
    """Blocks with the filters' results.

    Attributes:
        fails: of each block, the filters that it does not pass, and why of each.
        after: the date that it had to lie after, if any.
        rejected: lines that are no blocks.
    """

    path: Path
    blocks: tuple[Block, ...]
    fails: tuple[Mapping[str, str], ...]
    after: str | None = None
    knowing: Knowing | None = None
    rejected: tuple[ConversionError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def n_kept(self) -> int:
        """The number of kept blocks."""
        return sum(not reasons for reasons in self.fails)

    def stats(self) -> dict[str, Any]:
        """Counts, in all and by filter."""
        dropped = Counter(name for reasons in self.fails for name in reasons)
        alone = Counter(next(iter(reasons)) for reasons in self.fails if len(reasons) == 1)
        dated = [] if self.after is None else [MISSING, UNREADABLE, AFTER]
        names = [DUPLICATES, *dated, *([KNOWN] if self.knowing else [])]
        return {
            "blocks": len(self.blocks),
            "dropped": len(self.blocks) - self.n_kept,
            "kept": self.n_kept,
            "rejected": len(self.rejected),
            "filters": {name: {"dropped": dropped[name], "alone": alone[name]} for name in names},
            "known": None if self.knowing is None else _known_json(self.knowing),
        }

    def declare(self) -> dict[str, Table]:
        """A row per filter: blocks that it removes, and blocks that only it removes."""
        rows = tuple((name, *counts.values()) for name, counts in self.stats()["filters"].items())
        return {"filters": Table(("filter", "dropped", "alone"), rows)}

    @property
    def facts(self) -> dict[str, Any]:
        """Counts of blocks before and after, and of blocks that a model knows."""
        return {name: value for name, value in self.stats().items() if name != "filters"}


def filter_blocks(path: Path, after: str | None = None) -> FilteredBlocks:
    """Filters blocks by date and removes duplicates; calls no model and writes nothing.

    Args:
        after: blocks whose date lies at its beginning or later.

    Raises:
        ConversionError: no line is a block.
        ValueError: `after` is no date.
    """
    start = None if after is None else beginning(after)
    blocks, rejected = some_blocks(path)
    first: dict[str, int] = {}
    fails = []
    for block in blocks:
        line = first.setdefault(block.block_id, block.number)
        twice = {} if line == block.number else {DUPLICATES: f"the same as line {line}"}
        fails.append({**twice, **({} if start is None else _early(block.row.get("date"), start))})
    return FilteredBlocks(path, blocks, tuple(fails), after, rejected=rejected)


def beginning(date: object) -> datetime:
    """The beginning of an ISO 8601 date in UTC; for `2023-06` that of the month.

    Raises:
        ValueError: it is none.
    """
    from dateutil.parser import isoparser

    try:
        moment: datetime = isoparser("T").isoparse(str(date).strip().replace(" ", "T"))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{str(date)[:80]!r} is not an ISO date, such as 2023-06-30") from None


def _early(date: object, start: datetime) -> dict[str, str]:
    """The filter that a block's date fails, and the reason."""
    if date is None or date == "":
        return {MISSING: "no date"}
    try:
        return {AFTER: f"date is {str(date)[:80]}"} if beginning(date) < start else {}
    except ValueError as error:
        return {UNREADABLE: f"date {error}"}


def some_blocks(path: Path) -> tuple[tuple[Block, ...], tuple[ConversionError, ...]]:
    """The blocks of a file, and rejected lines.

    Raises:
        ConversionError: no line is a block.
    """
    rejected: list[ConversionError] = []
    blocks = tuple(read_blocks(path, rejected.append))
    if rejected and not blocks:
        raise rejected[0]
    return blocks, tuple(rejected)


def knowing_job(folder: TrackFolder, filtered: FilteredBlocks) -> Job[FilteredBlocks]:
    """Drops the blocks that the model of [generator] knows, like `ragval filter --known`.

    Args:
        filtered: what `filter_blocks` leaves.

    Raises:
        GraderError: none is named, or it cannot run here.
    """
    schema = None if folder.config.grader.structured == "none" else SCHEMA
    instruction = Instruction(schema=schema)
    writer = create_writer(folder.config, folder.root, instruction)
    return Job(_without_known(filtered, *keeping_writers(folder, writer)))


def _without_known(filtered: FilteredBlocks, source: KeepingWriter) -> Rounds[FilteredBlocks]:
    """Drops the blocks that the model knows; keeps blocks without a readable answer."""
    prompt, writer = named("known"), source.writer
    fitted = {
        block.block_id: prompt.about(block, writer)
        for block, fail in zip(filtered.blocks, filtered.fails, strict=True)
        if not fail
    }
    prompts = PromptSet.of_fitted(source, fitted)
    result: AskingResult[str] = yield [prompts]
    model_knows = {
        block_id: read_known(answer.text, cut=answer.cut) for block_id, answer in prompts.answered()
    }
    knowing = Knowing(**vars(result), answers=model_knows, cut=len(prompts.cut), model=writer.model)
    fails = tuple(
        {KNOWN: f"{writer.model} says that it knows it"}
        if not fail and model_knows.get(block.block_id)
        else fail
        for block, fail in zip(filtered.blocks, filtered.fails, strict=True)
    )
    return replace(filtered, fails=fails, knowing=knowing)


def write_filtered(filtered: FilteredBlocks, folder: Path) -> None:
    """Writes kept.jsonl, dropped.jsonl and stats.json, all of them or none.

    Raises:
        TrecexamError: they cannot be written.
    """
    kept_lines, dropped_lines = bytearray(), bytearray()
    for block, fail in zip(filtered.blocks, filtered.fails, strict=True):
        if fail:
            why = "; ".join(f"{name}: {text}" for name, text in fail.items())
            dropped_lines += line_of({**block.row, "filters": list(fail), "reason": why})
        else:
            kept_lines += line_of(block.row)
    settings = {"after": filtered.after, "known": filtered.knowing is not None}
    stats = {"file": filtered.path.name, **filtered.stats(), "settings": settings}
    contents = bytes(kept_lines), bytes(dropped_lines), to_json(stats).encode()
    replace_together({folder / name: content for name, content in zip(FILES, contents, strict=True)})


def _known_json(knowing: Knowing) -> dict[str, Any]:
    values: Sequence[bool | None] = list(knowing.answers.values())
    return {
        "model": knowing.model,
        "yes": values.count(True),
        "no": values.count(False),
        "unparsed": values.count(None),
        "unanswered": len(knowing.unwritten),
        "blocks_cut": knowing.cut,
        "ended_early": knowing.why or None,
    }
