"""The prompts of a language model for a question: the prompt of the exam paper (ICML 2024)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from trecexam.extensions.exams.exam_file import Source
from trecexam.templates import filled

#: Stored with each question.
NAME = "mcq-generation"


def prompt(source: Source, task_domain: str, plain: Callable[[str], str] = str) -> str:
    """The prompt for one passage. A title goes before the passage, on its own line.

    Args:
        plain: applied to what is filled in, such as the removal of control tokens.
    """
    documentation = f"{source.title}\n{source.text}" if source.title else source.text
    values = {"task_domain": plain(task_domain), "documentation": plain(documentation)}
    return filled(_published(), values, jinja=False, name=NAME)


@cache
def _published() -> str:
    """The published text, including its literal braces."""
    path = Path(__file__).parent / "texts" / f"{NAME}.txt"
    return path.read_text(encoding="utf-8").removesuffix("\n")
