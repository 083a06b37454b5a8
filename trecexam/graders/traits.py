"""What a grader says of itself, as one record: the only place that looks at its attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from converters.records import Item
from trecexam.graders.base import ITEM_KINDS, Cell, Estimate, Grader, Scale, Spent, Usage

#: (model, prompt) as people know them; None for what has no name.
Names = tuple[str | None, str | None]


class UsageMeter(Protocol):
    """Counts the tokens that are paid for.

    Attributes:
        before: what the grader used earlier on this track; set from outside.
        beside: what other graders used of the same budget; set from outside.
        used: what it used since.
    """

    before: Usage
    beside: Spent
    used: Usage

    def as_json(self, usage: Usage) -> dict[str, Any]: ...


@dataclass(frozen=True)
class GraderTraits:
    """What a grader says of itself, see `Grader`. What changes while it works is read when it is called.

    Attributes:
        item_kinds: the kinds of items that it grades.
        needs_query_text: it is told the query's text beside each item.
        scale: of its ratings.
        score_settings: settings of [scores] that suit it, where the track does not say otherwise.
        model_and_prompt: what people know them as; None where the grader does not say. A recording is read
            for it.
        meter: where tokens are paid for.
        estimate: what grading would take.
        read: the rating that a raw answer means, and its status.
        free_text: `read` counts, as what is stored is a model's own words; None where it does not say.
        probabilities: those of the ratings 0..5 that raw answers mean, shape (answers, 6), NaN where one
            means none; None where the grader stores what it knows of them.
        cosines: those that raw answers are, NaN where one is none; None where they are something else.
        label: a label between 0 and 1, finer than a rating, that a raw answer means.
        prompt: the prompt of a cell, and whether its text was cut for it.
        cut_texts: how many texts were too long for its model, since it was made.
        known_passages: query_id -> doc_ids that it has grades of, where it goes by ids and reads no texts.
        cells_share: what a passage's cells have in common for the language model that is asked; None where
            none is.
        environment: what the answers that it gave last were made on; None where that is not known.
    """

    item_kinds: frozenset[str]
    needs_query_text: bool
    scale: Scale
    score_settings: Mapping[str, Any]
    model_and_prompt: Callable[[], Names | None]
    meter: UsageMeter | None
    estimate: Callable[[Iterable[Cell]], Estimate] | None
    read: Callable[[Item, str], tuple[int | None, str]] | None
    free_text: bool | None
    probabilities: Callable[[Sequence[str]], Any] | None
    cosines: Callable[[Sequence[str]], Any] | None
    label: Callable[[Item, str], Any] | None
    prompt: Callable[[Cell], Any] | None
    cut_texts: Callable[[], int]
    known_passages: Mapping[str, Collection[str]] | None
    cells_share: Literal["nothing", "prompts", "answer"] | None
    environment: Callable[[], Mapping[str, str] | None]


def traits_of(grader: Grader) -> GraderTraits:
    """What a grader says of itself now, and the default of all that it does not say.

    A grader whose work another one does has that one's as `traits`.
    """
    own = getattr(grader, "traits", None)
    if isinstance(own, GraderTraits):
        return own
    prompt = getattr(grader, "prompt", None)
    return GraderTraits(
        item_kinds=frozenset(getattr(grader, "item_kinds", ITEM_KINDS)),
        needs_query_text=getattr(grader, "needs_query_text", False),
        scale=getattr(grader, "scale", Scale()),
        score_settings=getattr(grader, "score_settings", {}),
        model_and_prompt=lambda: getattr(grader, "model_and_prompt", None),
        meter=getattr(grader, "meter", None),
        estimate=getattr(grader, "estimate", None),
        read=getattr(grader, "read", None),
        free_text=getattr(grader, "free_text", None),
        probabilities=getattr(grader, "probabilities", None),
        cosines=getattr(grader, "cosines", None),
        label=getattr(grader, "label", None),
        # Of a recording it is the prompt's name.
        prompt=prompt if callable(prompt) else None,
        cut_texts=lambda: getattr(grader, "cut", 0),
        known_passages=getattr(grader, "known_passages", None),
        cells_share=getattr(grader, "cells_share", None),
        environment=lambda: getattr(grader, "environment", None),
    )
