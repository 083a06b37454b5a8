"""What a language model is asked for a question: the published prompt, or one of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trecexam.extensions.exams.exam_file import Source
from trecexam.templates import TemplateFile, filled, read_own_prompt

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


def published() -> QuestionPrompt:
    """The prompt of the exam paper (ICML 2024), with its own braces where the model is to write."""
    path = Path(__file__).parent / "texts" / "mcq-generation.txt"
    return QuestionPrompt("mcq-generation", path.read_text(encoding="utf-8").removesuffix("\n"))


def load_prompt(path: Path) -> QuestionPrompt:
    """A prompt from a `.toml` file or a Jinja template.

    Raises:
        GraderError: the file cannot be read or used; the message says why.
    """
    # The published prompt has the model fill in {question}: that is no slot of ours.
    known = ("question", *SLOTS)
    own = read_own_prompt(path, TemplateFile, known, {"passage": ("documentation",)})
    return QuestionPrompt(own.digest_name, own.template, own.jinja)
