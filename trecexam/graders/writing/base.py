"""Writers: prompts in, texts out; and graders that read what a writer wrote."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.extension import provided
from trecexam.graders.base import Answer, Cell, Estimate, Grader
from trecexam.graders.meter import Meter
from trecexam.graders.replies import Unwritten, WrittenText, cut_at
from trecexam.packages import missing_for_servers


class Fitted(NamedTuple):
    """A prompt that a model can take, and whether the text in it had to be cut for that."""

    prompt: str
    cut: bool


class Writer(Protocol):
    """Writes answers to prompts.

    Attributes:
        model: its name, stored with its texts.
        new_tokens: the most tokens of an answer.
        seed: of its random numbers; None where none is set.
        identity: everything that can change a text, but the prompt; known before any model is loaded.
        meter: counts what is paid for; None where nothing is.
        environment: what a model in this process runs on; None before it is loaded, and of others.
    """

    model: str
    new_tokens: int
    seed: int | None

    @property
    def identity(self) -> Mapping[str, Any]: ...

    @property
    def meter(self) -> Meter | None: ...

    @property
    def environment(self) -> Mapping[str, str] | None: ...

    def plain(self, text: str) -> str:
        """Return the text with nothing in it that the model would take for a control token."""
        ...

    def fitted(self, render: Callable[[str], str], text: str) -> Fitted:
        """Return the prompt, `render` of a plain text, with as much of `text` as the model takes."""
        ...

    def write(self, prompts: Iterable[str]) -> Iterator[Sequence[tuple[str, WrittenText | Unwritten]]]:
        """Yield (prompt, text), as they come, in any order. A list may be empty: then it is still at work.

        Raises:
            UngradedError: it gave what it can give now.
            GraderError: it cannot write at all; the message says what to do.
        """
        ...

    def estimate(self, prompts: Sequence[str]) -> Estimate:
        """Return what it would take to answer these; asks nobody."""
        ...


@dataclass(frozen=True)
class LocalModelSettings:
    """Settings of a model in this process that writes: its files, and how it writes.

    Attributes:
        kind: "causal" or "seq2seq".
        temperature: 0 writes what is most probable.
        new_tokens: that an answer may have.
        max_batch_tokens: of prompts and answers together; None for what suits the device.
        system: what stands before each prompt, as not all chat templates know a system's message.
        max_length: tokens of a prompt; None for what the model takes.
    """

    kind: str
    folder: Path
    name: str
    temperature: float
    seed: int | None
    new_tokens: int
    device: str | None = None
    dtype: str = "auto"
    max_batch_tokens: int | None = None
    system: str = ""
    max_length: int | None = None


@contextlib.contextmanager
def naming(section: str) -> Iterator[None]:
    """Have errors that send the reader to [grader] name the section that counts instead."""
    try:
        yield
    except GraderError as error:
        if section == "grader":
            raise
        raise type(error)(
            error.reason.replace("[grader]", f"[{section}]"), path=error.path, line=error.line
        ) from error.__cause__


def refuse(settings: GraderSection, keys: Iterable[str], why: str) -> None:
    """Refuse settings that are for other graders, so that none is passed over in silence."""
    for key in keys:
        if getattr(settings, key) is not None:
            raise GraderError(f"`{key}` in [grader] is not for `{settings.name}`, which {why}")


def missing_for_writing() -> str:
    """Return what is not installed of what a model needs; "" where one here or a server can be asked."""
    local, server = provided("models").missing(), missing_for_servers()
    return f"{local}; or {server}" if local and server else ""


class WritingGrader(Grader):
    """Has a writer answer a prompt for each cell; cells with the same prompt share one answer.

    What the model wrote is stored, and what it means is read from that: another reading runs no model.
    """

    free_text = True
    cells_share = "answer"
    name: str

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        meter = self.meter = writer.meter
        # The identity of a model here has the most tokens of its replies.
        self.reply_limit = None if meter is None else writer.new_tokens

    @abstractmethod
    def prompt(self, cell: Cell) -> Fitted:
        """Return the model's prompt about a cell."""

    @abstractmethod
    def read(self, item: Item, text: str, cut: bool = False) -> int | None:
        """Read the rating that an answer of the model means; `cut`: it was cut off."""

    @abstractmethod
    def asked(self) -> Mapping[str, Any]:
        """Return what enters the identity: `prompts`, with `name` and `asks` of each, and more."""

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        writer = dict(self.writer.identity)
        return {"grader": self.name, "model": self.writer.model, "writer": writer, **self.asked()}

    @property
    def environment(self) -> Mapping[str, str] | None:
        return self.writer.environment

    def grade(self, cells: Iterable[Cell]) -> Iterator[Sequence[tuple[Cell, Answer]]]:
        waiting: dict[str, list[Cell]] = {}

        def prompts() -> Iterator[str]:
            for (prompt, cut), group in groupby(cells, self.prompt):
                self.cut += cut
                same = waiting.get(prompt)
                if same is not None:
                    same += group
                    continue
                waiting[prompt] = [*group]
                yield prompt

        for batch in self.writer.write(prompts()):
            yield [
                (cell, self._answer(cell, response))
                for prompt, response in batch
                for cell in waiting.pop(prompt)
            ]

    def _answer(self, cell: Cell, response: WrittenText | Unwritten) -> Answer:
        if isinstance(response, Unwritten):
            return Answer(None, "error", f"was not answered: the model {response.reason}")
        if response.refused:
            return Answer(None, "refused", response.text)
        rating = self.read(cell.item, response.text, response.cut)
        limit = cut_at(response.text, self.writer.new_tokens, cut=response.cut)
        return Answer.read(rating, response.text, cut_at=limit)

    def estimate(self, cells: Iterable[Cell]) -> Estimate:
        if self.meter is None:
            return super().estimate(cells)
        number, prompts = 0, dict[str, None]()
        for cell in cells:
            number += 1
            prompts[self.prompt(cell).prompt] = None
        return self.writer.estimate([*prompts])._replace(cells=number)
