"""Prompts about a knowledge block: RAGVAL's published prompt, and our own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from trecexam.extensions.ragval.formats.knowledge import Block
from trecexam.graders.server.model import shortened
from trecexam.graders.writing.base import Fitted, Writer
from trecexam.templates import filled

#: Maximum characters of a block in a prompt; the rest is cut.
MOST_CHARACTERS = 15_000
#: Prompt names: "question" is RAGVAL's, as published; other prompts are ours.
Name = Literal["question", "closed-book", "oracle"]


def display_name(name: Name) -> str:
    """Return the prompt name to store with a written text."""
    return f"ragval-{name}"


def about(block: Block, writer: Writer) -> Fitted:
    """Return the prompt for a question about a block; cut the end of a long block."""
    fitted = writer.fitted(lambda part: _text("question", text=part), block.content[:MOST_CHARACTERS])
    return fitted._replace(cut=fitted.cut or len(block.content) > MOST_CHARACTERS)


def asking(bound: Name, question: str, content: str, writer: Writer, most: int | None = None) -> Fitted:
    """Return the prompt for an answer to a question, with its block if the prompt has a slot for it.

    Args:
        most: maximum characters of the block; None for the model's limit.
    """
    plain = writer.plain(question)
    if "{text}" not in _template(bound):
        return Fitted(_text(bound, question=plain), cut=False)
    part = content if most is None else shortened(content, most)
    fitted = writer.fitted(lambda part: _text(bound, question=plain, text=part), part)
    return fitted._replace(cut=fitted.cut or len(part) < len(content))


def _text(name: Name, **values: str) -> str:
    return filled(_template(name), values, jinja=False, name=display_name(name))


@cache
def _template(name: Name) -> str:
    """Return the text that comes with the package, with slots in braces."""
    path = Path(__file__).parent / "texts" / f"{name}.txt"
    return path.read_text(encoding="utf-8").removesuffix("\n")
