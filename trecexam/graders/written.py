"""Graders whose answers are a model's free text, read afterwards: what eRAG and RAGVAL have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

from converters.records import Item
from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.graders.base import Answer, Cell, Estimate, Grader
from trecexam.graders.prompts import Reading
from trecexam.graders.replies import Unwritten, WrittenText, cut_at
from trecexam.graders.server.model import missing_for_servers
from trecexam.graders.writing.base import Fitted, Writer, models_here


def refuse(settings: GraderSection, keys: Iterable[str], why: str) -> None:
    """Refuse settings that are for other graders, so that none is passed over in silence."""
    for key in keys:
        if getattr(settings, key) is not None:
            raise GraderError(f"`{key}` in [grader] is not for `{settings.name}`, which {why}")


def missing_for_writing() -> str:
    """Return what is not installed of what a model needs; "" where one here or a server can be asked."""
    local, server = models_here().missing(), missing_for_servers()
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
    def read(self, item: Item, text: str, cut: bool = False) -> Reading:
        """Read the rating that an answer of the model means, and its status; `cut`: it was cut off."""

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
            status = "refused" if response.refused else "error"
            return Answer(None, status, f"was not answered: the model {response.reason}")
        rating, status = self.read(cell.item, response.text, response.cut)
        limit = cut_at(response.text, self.writer.new_tokens, cut=response.cut)
        return Answer(rating, status, response.text, cut_at=limit)

    def estimate(self, cells: Iterable[Cell]) -> Estimate:
        if self.meter is None:
            return super().estimate(cells)
        number, prompts = 0, dict[str, None]()
        for cell in cells:
            number += 1
            prompts[self.prompt(cell).prompt] = None
        return self.writer.estimate([*prompts])._replace(cells=number)
