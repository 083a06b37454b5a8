"""What a language model is asked about a knowledge block: published prompts, ours, or the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trecexam.templates import TemplateFile, filled, read_own_prompt

#: Characters of a block that a question is written about; its end is cut.
MOST_CHARACTERS = 15_000
#: "question" is RAGVAL's, as published; the others are ours.
Name = Literal["question", "known", "closed-book", "oracle"]


@dataclass(frozen=True)
class BlockPrompt:
    """A prompt on a block.

    Attributes:
        name: as it is noted with what is written.
        template: the text, with slots in braces (or Jinja's, where `jinja` is set).
    """

    name: str
    template: str
    jinja: bool = False

    def text(self, values: Mapping[str, str]) -> str:
        """The prompt with these values in its slots.

        Raises:
            GraderError: a Jinja template cannot be filled in with them.
        """
        return filled(self.template, values, jinja=self.jinja, name=self.name)


def named(name: Name) -> BlockPrompt:
    """A prompt that comes with the package."""
    path = Path(__file__).parent / "texts" / f"{name}.txt"
    return BlockPrompt(f"ragval-{name}", path.read_text(encoding="utf-8").removesuffix("\n"))


def load_prompt(path: Path) -> BlockPrompt:
    """A prompt for questions from a `.toml` file or a Jinja template, with {text} and perhaps {title}.

    Raises:
        GraderError: the file cannot be read or used; the message says why.
    """
    own = read_own_prompt(path, TemplateFile, ("title", "text"), {"block": ("text",)})
    return BlockPrompt(own.digest_name, own.template, own.jinja)
