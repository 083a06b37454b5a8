"""A user's own prompt, from a TOML or a Jinja file in the track folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from converters.records import Item
from trecexam.errors import GraderError
from trecexam.graders.base import Scale
from trecexam.graders.prompts.assignments import ASSIGNMENTS, GROUP, as_label
from trecexam.graders.prompts.model import SLOTS, Prompt
from trecexam.graders.prompts.parsing import SUPPORT
from trecexam.templates import checked_slots, read_prompt_file

#: What a prompt may ask about, in the order in which its slots are looked at.
_KINDS: tuple[Literal["question", "nugget", "statement", "query"], ...] = (
    "question",
    "nugget",
    "statement",
    "query",
)
#: What a prompt may name that asks about several nuggets at once.
_LIST_SLOTS = ("nuggets", "num_nuggets")


class PromptFile(BaseModel):
    """What a prompt's TOML file may say."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    template: str = Field(
        description="The text; {question}, {nugget}, {query}, {context}, {answer} (the passage too) and "
        "{correct_answer} are filled in; of [support] {statement} and {citation}; of a list {nuggets} and "
        "{num_nuggets}."
    )
    name: str | None = Field(None, description="Unset: the file's name without its ending.")
    version: int | str = Field("1", description="Change it to have the same text asked again.")
    asks: Literal["question", "nugget", "statement", "query"] | None = Field(
        None, description="What is graded. Unset: the slot that the text has."
    )
    parser: Literal["rating", "yes_no", "answer", "answer_key", "final_score", "support", "assignment"] = (
        Field("rating", description="How an answer becomes a rating.")
    )
    answers: dict[str, StrictInt] | None = Field(
        None, description='The answers that `decode = "choices"` permits, and their ratings.'
    )
    group: int | None = Field(
        None,
        ge=2,
        le=100,
        description="The most nuggets of one prompt, in {nuggets} [10]. The answer is a list.",
    )
    system: str = Field("", description="The system message, before the prompt.")
    max_rating: int = Field(5, ge=1, le=5, description="The best rating of the scale.")
    min_rating: int | None = Field(
        None, ge=1, le=5, description="A passage reaches an item from this rating on."
    )


def load_prompt(path: Path) -> Prompt:
    """A prompt from a `.toml` file, or from a Jinja template with a 0..5 scale.

    Raises:
        GraderError: the file cannot be read or used; the message says why.
    """
    file, jinja = read_prompt_file(path, PromptFile)
    return _prompt(file, path, jinja=jinja)


def _prompt(file: PromptFile, path: Path, *, jinja: bool) -> Prompt:
    template = file.template.removesuffix("\n")
    slots_used = checked_slots(template, path, (*SLOTS, *_LIST_SLOTS), jinja=jinja)
    kind = _asked_kind(file, slots_used, path, jinja=jinja)
    group = _group(file, slots_used, path)
    short = {"yes_no": 1, "answer": 1, "answer_key": 1, "support": 2}
    scale = short.get(file.parser, file.max_rating)
    answers = _checked_answers(file, scale, path)
    if file.min_rating is not None and file.min_rating > scale:
        raise GraderError(f"`min_rating`: {file.min_rating} is not on the scale 0..{scale}", path=path)
    prompt = Prompt(
        name=file.name or path.stem,
        version=str(file.version),
        template=template,
        asks=kind,
        parser=file.parser,
        answers=tuple(answers.items()),
        max_rating=scale,
        min_rating=file.min_rating or Scale.up_to(scale).min_rating,
        source=path.name,
        jinja=jinja,
        system=file.system,
        group=group,
    )
    # What cannot be filled in at all shows here, not after an hour of grading.
    try:
        prompt.text("a query", Item("q1", "q1/1", "What is it?", kind), "A passage.")
    except GraderError as error:
        raise GraderError(str(error), path=path) from None
    return prompt


def _asked_kind(
    file: PromptFile, slots: AbstractSet[str], path: Path, *, jinja: bool
) -> Literal["question", "nugget", "statement", "query"]:
    """What a prompt with these slots asks about."""
    left, right = ("{{ ", " }}") if jinja else ("{", "}")
    if not slots & {"context", "passage", "citation", "answer"}:
        raise GraderError(
            f"this prompt has no place for the passage: write {left}context{right} into it", path=path
        )
    if "nuggets" in slots:
        return "nugget"
    if "question" in slots and "nugget" in slots:
        raise GraderError("this prompt asks about a question and a nugget at once: make it two", path=path)
    kind = file.asks or next((kind for kind in _KINDS if kind in slots), None)
    if kind is None or kind not in slots:
        slot = f"{left}{file.asks or 'question'}{right}"
        raise GraderError(f"this prompt asks about nothing: write {slot} into it", path=path)
    return kind


def _group(file: PromptFile, slots: AbstractSet[str], path: Path) -> int:
    """How many nuggets the prompt asks about at most."""
    reason = ""
    if "nuggets" not in slots:
        if file.parser == "assignment":
            reason = '`parser = "assignment"` reads a list: write {nuggets} into it'
        elif file.group is not None or "num_nuggets" in slots:
            what = "{num_nuggets}" if file.group is None else "`group`"
            reason = f"{what} is for prompts with {{nuggets}}"
    elif file.parser != "assignment":
        reason = 'a list of nuggets, {nuggets}, needs a .toml file with `parser = "assignment"`'
    elif file.asks not in {None, "nugget"}:
        reason = "{nuggets} asks about nuggets: take `asks` out"
    elif single := sorted(slots & {"question", "nugget", "statement", "correct_answer"}):
        reason = f"it asks about several nuggets at once: take {{{single[0]}}} out"
    if reason:
        raise GraderError(f"this prompt cannot be used: {reason}", path=path)
    return (file.group or GROUP) if "nuggets" in slots else 1


def _checked_answers(file: PromptFile, scale: int, path: Path) -> Mapping[str, int]:
    """The permitted answers with their ratings: the file's own, or those of its parser."""
    answers = file.answers
    if answers is None:
        answers = {
            "rating": {str(rating): rating for rating in range(scale, -1, -1)},
            "yes_no": {"Yes": 1, "No": 0},
            "support": dict(SUPPORT),
            "assignment": dict(ASSIGNMENTS),
            "final_score": {f"##final score: {rating}": rating for rating in range(scale, -1, -1)},
        }.get(file.parser, {})
    wrong = [answer for answer, rating in answers.items() if not 0 <= rating <= scale or not answer.strip()]
    if wrong:
        raise GraderError(f"`answers`: '{wrong[0]}' has no rating on the scale 0..{scale}", path=path)
    if file.parser == "assignment":
        _check_labels([*answers], path)
    return answers


def _check_labels(labels: Sequence[str], path: Path) -> None:
    """Refuses labels that could not be read out of a list."""
    if not labels:
        raise GraderError("`answers`: a list needs labels", path=path)
    for index, label in enumerate(labels):
        if re.search(r"""[\[\]'",\\\n]""", label) or not as_label(label):
            raise GraderError(f"`answers`: '{label}' cannot be in a list", path=path)
        if as_label(label) in map(as_label, labels[:index]):
            raise GraderError(f"`answers`: '{label}' is read as another answer", path=path)
