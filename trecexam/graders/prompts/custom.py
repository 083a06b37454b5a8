"""A user's own prompt, from a TOML or a Jinja file in the track folder."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Literal

from pydantic import Field, StrictInt

from converters.records import Item
from trecexam.errors import GraderError
from trecexam.graders.base import Scale
from trecexam.graders.prompts.model import SCALES, SLOTS, Prompt, usual_answers
from trecexam.graders.prompts.parsing import GROUP, as_label
from trecexam.templates import TemplateFile, read_own_prompt, slots

#: What a prompt may ask about, in the order in which its slots are looked at.
_KINDS = ("question", "nugget", "statement", "query")
_PASSAGE = ("context", "passage", "citation", "answer")
#: What a prompt may name that asks about several nuggets at once.
_LIST_SLOTS = ("nuggets", "num_nuggets")


class PromptFile(TemplateFile):
    """A prompt's TOML file: see `Prompt`. Another `version` has the same text sent again.

    Unset: `asks` is the slot that the text has; `answers` are those of the parser; `group` is 10 of a list.
    """

    version: int | str = "1"
    asks: Literal["question", "nugget", "statement", "query"] | None = None
    parser: Literal["rating", "yes_no", "answer", "answer_key", "final_score", "support", "assignment"] = (
        "rating"
    )
    answers: dict[str, StrictInt] | None = None
    group: int | None = Field(None, ge=2, le=100)
    system: str = ""
    max_rating: int = Field(5, ge=1, le=5)
    min_rating: int | None = Field(None, ge=1, le=5)


def load_prompt(path: Path) -> Prompt:
    """Read a prompt from a `.toml` file, or from a Jinja template with a 0..5 scale."""
    own = read_own_prompt(path, PromptFile, (*SLOTS, *_LIST_SLOTS), {"passage": _PASSAGE})
    file, jinja = own.file, own.jinja
    present = slots(own.template, jinja=jinja)
    scale = SCALES.get(file.parser, file.max_rating)
    try:
        prompt = Prompt(
            name=own.name,
            version=str(file.version),
            template=own.template,
            asks=_asked_kind(file, present, *(("{{ ", " }}") if jinja else "{}")),
            group=_group(file, present),
            parser=file.parser,
            answers=_checked_answers(file, scale),
            max_rating=scale,
            min_rating=file.min_rating or Scale.up_to(scale).min_rating,
            source=path.name,
            jinja=jinja,
            system=file.system,
        )
        if prompt.min_rating > scale:
            raise GraderError(f"`min_rating`: {file.min_rating} is not on the scale 0..{scale}")
        # What cannot be filled in at all shows here, not after an hour of grading.
        prompt.text("a query", Item("q1", "q1/1", "What is it?", prompt.asks), "A passage.")
    except GraderError as error:
        raise GraderError(error.reason, path=path) from None
    return prompt


def _asked_kind(file: PromptFile, present: AbstractSet[str], left: str, right: str) -> str:
    """Return what a prompt with these slots, between `left` and `right`, asks about."""
    if "nuggets" in present:
        return "nugget"
    if "question" in present and "nugget" in present:
        raise GraderError("this prompt asks about a question and a nugget at once: make it two")
    kind: str | None = file.asks or next((kind for kind in _KINDS if kind in present), None)
    if kind is None or kind not in present:
        slot = f"{left}{file.asks or 'question'}{right}"
        raise GraderError(f"this prompt asks about nothing: write {slot} into it")
    return kind


def _group(file: PromptFile, present: AbstractSet[str]) -> int:
    """Return how many nuggets the prompt asks about at most."""
    is_list, reads_list = "nuggets" in present, file.parser == "assignment"
    single = [f"{{{slot}}}" for slot in (*_KINDS[:3], "correct_answer") if slot in present]
    single += ["`asks`"] if file.asks not in {None, "nugget"} else []
    if is_list and single:
        raise GraderError(f"{{nuggets}} asks about several nuggets at once: take {', '.join(single)} out")
    if is_list != reads_list or (not is_list and (file.group is not None or "num_nuggets" in present)):
        raise GraderError(
            'a list of nuggets needs {nuggets} and a .toml file with `parser = "assignment"`; '
            "`group`, {num_nuggets} and that parser are for such a list alone"
        )
    return (file.group or GROUP) if is_list else 1


def _checked_answers(file: PromptFile, scale: int) -> tuple[tuple[str, int], ...]:
    """Return the permitted answers with their ratings: the file's own, or those of its parser."""
    if file.answers is None:
        return usual_answers(file.parser, scale)
    is_list, labels = file.parser == "assignment", set[str]()
    for answer, rating in file.answers.items():
        if not 0 <= rating <= scale or not answer.strip():
            raise GraderError(f"`answers`: '{answer}' has no rating on the scale 0..{scale}")
        label = as_label(answer)
        if is_list and (re.search(r"""[\[\]'",\\\n]""", answer) or not label or label in labels):
            raise GraderError(f"`answers`: '{answer}' cannot be told from others in a list")
        labels.add(label)
    if is_list and not labels:
        raise GraderError("`answers`: a list needs labels")
    return tuple(file.answers.items())
