"""Prompts: published ones by name, a user's own from a file in the track folder."""

from __future__ import annotations

from pathlib import Path

from trecexam.config import GraderSection
from trecexam.errors import GraderError
from trecexam.folder import PROMPT_SUFFIXES
from trecexam.graders.prompts.custom import load_prompt
from trecexam.graders.prompts.model import Prompt
from trecexam.graders.prompts.parsing import Reading
from trecexam.graders.prompts.published import published
from trecexam.templates import published_prompt

#: Asked where the track names no prompt: the paper's self-rating of each kind of item.
DEFAULT = ("QuestionSelfRatedUnanswerablePromptWithChoices", "NuggetSelfRatedPrompt")

__all__ = ["DEFAULT", "Prompt", "Reading", "chosen_prompts", "load_prompt", "named", "published"]


def named(name: str, root: Path) -> Prompt:
    """Return the published prompt of that name, or the one in a file of the track folder `root`.

    Raises:
        GraderError: there is none; the message names the nearest.
    """
    if Path(name).suffix.lower() in PROMPT_SUFFIXES:
        path = root / name
        if not path.is_file():
            raise GraderError("no such prompt file; see `prompt` in [grader] of trecexam.toml", path=path)
        return load_prompt(path)
    return published_prompt(name, published())


def chosen_prompts(settings: GraderSection, root: Path, *, passage_first: bool) -> list[Prompt]:
    """Return the prompts that the settings name, or the paper's self-ratings."""
    names = DEFAULT if settings.prompt is None else (settings.prompt,)
    prompts = [named(name, root) for name in names]
    return [prompt.passage_first() for prompt in prompts] if passage_first else prompts
