"""Prompts about a knowledge block: RAGVAL's published one, and our own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from trecexam.extensions.ragval.formats.knowledge import Block
from trecexam.graders.server.model import shortened
from trecexam.graders.writing.base import Fitted, Writer
from trecexam.templates import filled

#: Characters of a block that a question is written about; its end is cut.
MOST_CHARACTERS = 15_000
#: "question" is RAGVAL's, as published; the others are ours.
Name = Literal["question", "closed-book", "oracle"]


@dataclass(frozen=True)
class BlockPrompt:
    """A prompt about a block.

    Attributes:
        name: stored with the written text.
        template: the text, with slots in braces.
    """

    name: str
    template: str

    def about(self, block: Block, writer: Writer) -> Fitted:
        """The prompt for a block, whose end is cut if it is too long."""
        fitted = writer.fitted(lambda part: self._text({"text": part}), block.content[:MOST_CHARACTERS])
        return fitted._replace(cut=fitted.cut or len(block.content) > MOST_CHARACTERS)

    def asking(self, question: str, content: str, writer: Writer, most: int | None = None) -> Fitted:
        """The prompt for a question, with its block if the prompt has a slot for it.

        Args:
            most: characters of the block; None for as many as the model takes.
        """
        values = {"question": writer.plain(question)}
        if "{text}" not in self.template:
            return Fitted(self._text(values), cut=False)
        part = content if most is None else shortened(content, most)
        fitted = writer.fitted(lambda part: self._text({**values, "text": part}), part)
        return fitted._replace(cut=fitted.cut or len(part) < len(content))

    def _text(self, values: Mapping[str, str]) -> str:
        return filled(self.template, values, jinja=False, name=self.name)


@cache
def named(name: Name) -> BlockPrompt:
    """A prompt that comes with the package."""
    path = Path(__file__).parent / "texts" / f"{name}.txt"
    return BlockPrompt(f"ragval-{name}", path.read_text(encoding="utf-8").removesuffix("\n"))
