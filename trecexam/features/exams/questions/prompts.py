"""What a language model is asked for a question: the published prompt, or one of the user's own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from converters.exam import Source
from trecexam.errors import GraderError
from trecexam.templates import checked_slots, filled, read_prompt_file

#: What a template may name.
SLOTS = ("task_domain", "documentation", "title", "topic")


@dataclass(frozen=True)
class QuestionPrompt:
    """A prompt that makes a language model write a multiple-choice question.

    Attributes:
        name: as it is noted with each question.
        template: the text, with slots in braces (or Jinja's, where `jinja` is set).
    """

    name: str
    template: str
    jinja: bool = False

    def text(self, source: Source, task_domain: str, plain: Callable[[str], str] = str) -> str:
        """The prompt for one passage. A title goes before the passage, on a line of its own.

        Args:
            plain: applied to what is filled in, such as the removal of control tokens.

        Raises:
            GraderError: a Jinja template cannot be filled in with these values.
        """
        documentation = f"{source.title}\n{source.text}" if source.title else source.text
        values = {
            "task_domain": plain(task_domain),
            "documentation": plain(documentation),
            "title": plain(source.title),
            "topic": plain(source.topic),
        }
        return filled(self.template, values, jinja=self.jinja, name=self.name)


class QuestionPromptFile(BaseModel):
    """What the TOML file of a prompt of the user's own may say."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    template: str = Field(description="The text; {task_domain} and {documentation} are filled in.")
    name: str | None = Field(None, description="Unset: the file's name without its ending.")


def published() -> QuestionPrompt:
    """The prompt of the exam paper (ICML 2024), with its own braces where the model is to write."""
    path = Path(__file__).parent / "texts" / "mcq-generation.txt"
    return QuestionPrompt("mcq-generation", path.read_text(encoding="utf-8").removesuffix("\n"))


def load_prompt(path: Path) -> QuestionPrompt:
    """A prompt from a `.toml` file or a Jinja template.

    Raises:
        GraderError: the file cannot be read or used; the message says why.
    """
    file, jinja = read_prompt_file(path, QuestionPromptFile)
    template = file.template.removesuffix("\n")
    # The published prompt has the model fill in {question}: that is no slot of ours.
    found = checked_slots(template, path, ("question", *SLOTS), jinja=jinja)
    if "documentation" not in found:
        slot = "{{ documentation }}" if jinja else "{documentation}"
        raise GraderError(f"this prompt has no place for the passage: write {slot} into it", path=path)
    # Under one name the text may change: what was asked must stay known.
    digest = hashlib.sha256(template.encode()).hexdigest()[:12]
    return QuestionPrompt(f"{file.name or path.stem} sha256:{digest}", template, jinja)
