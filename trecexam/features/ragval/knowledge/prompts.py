"""What a language model is asked about a knowledge block: published prompts, ours, or the user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trecexam.errors import GraderError
from trecexam.templates import checked_slots, filled, read_prompt_file

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


class BlockPromptFile(BaseModel):
    """What the TOML file of a prompt of the user's own may say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    template: str = Field(description="The text; {text} and {title} are filled in.")
    name: str | None = Field(None, description="Unset: the file's name without its ending.")


def named(name: Name) -> BlockPrompt:
    """A prompt that comes with the package."""
    path = Path(__file__).parent / "texts" / f"{name}.txt"
    return BlockPrompt(f"ragval-{name}", path.read_text(encoding="utf-8").removesuffix("\n"))


def load_prompt(path: Path) -> BlockPrompt:
    """A prompt for questions from a `.toml` file or a Jinja template, with {text} and perhaps {title}.

    Raises:
        GraderError: the file cannot be read or used; the message says why.
    """
    file, jinja = read_prompt_file(path, BlockPromptFile)
    template = file.template.removesuffix("\n")
    found = checked_slots(template, path, ("title", "text"), jinja=jinja)
    if "text" not in found:
        slot = "{{ text }}" if jinja else "{text}"
        raise GraderError(f"this prompt has no place for the block: write {slot} into it", path=path)
    # Under one name the text may change: what was asked must stay known.
    digest = hashlib.sha256(template.encode()).hexdigest()[:12]
    return BlockPrompt(f"{file.name or path.stem} sha256:{digest}", template, jinja)
