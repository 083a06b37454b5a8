"""What a grader says of itself, as one record: the only place that looks at its attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
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


class ReadsAnswers(Protocol):
    """Reads the rating that a raw answer means, and its status.

    `cut`: the model was stopped at the most tokens of a reply.
    """

    def __call__(self, item: Item, text: str, cut: bool = False, /) -> tuple[int | None, str]: ...


@dataclass(frozen=True, kw_only=True)
class GraderTraits:
    """What a grader says of itself, by attributes of these names; `traits_of` alone reads them.

    Of what is called here it has `model_and_prompt` and `environment` themselves, and for `cut_texts` a
    number, `cut`: these are read when they are called. A grader whose work another one does has that one's
    `GraderTraits` as `traits`.

    Attributes:
        item_kinds: the kinds of items that it grades; {"query"} grades a passage's relevance to the query
            itself, whatever the bank holds.
        needs_query_text: it is told the query's text beside each item.
        scale: of its ratings.
        score_settings: settings of [scores] that suit it, where the track does not say otherwise.
        model_and_prompt: what people know them as, where the identity names neither; None where it does not
            say. A recording is read for it.
        meter: where tokens are paid for; with it comes `estimate`.
        estimate: what grading would take.
        read: the rating that a raw answer means, and its status, see `ReadsAnswers`.
        reply_limit: the most tokens of a reply, where that is not in the identity: a cell whose answer was
            cut off at fewer is graded again.
        free_text: `read` counts, as what is stored is a model's own words: another way of reading runs no
            model; None where it does not say.
        probabilities: those of the ratings 0..5 that raw answers mean, shape (answers, 6), NaN where one
            means none; None where the grader stores what it knows of them.
        cosines: those that raw answers are, NaN where one is none; None where they are something else.
        label: a label between 0 and 1, finer than a rating, that a raw answer means.
        prompt: the prompt of a cell, and whether its text was cut for it.
        cut_texts: how many texts were too long for its model, since it was made.
        known_passages: query_id -> doc_ids that it has grades of, where it goes by ids. It needs no texts
            then, and all of these passages are pooled.
        cells_share: with a language model, what a passage's cells have in common there: "nothing",
            the beginning of their "prompts", which is read once where they come together, or one "answer" to
            all. Such a model grades the most useful cells first.
        model_to_load: the name of the model that the next grading loads; "" if it loads none.
        environment: what the answers that it gave last were made on, as names and values (device, dtype,
            versions ...); None where that is not known, as before its model is loaded. Not in the identity.
    """

    item_kinds: frozenset[str] = ITEM_KINDS
    needs_query_text: bool = False
    scale: Scale = Scale()  # noqa: RUF009 - frozen
    score_settings: Mapping[str, Any] = field(default_factory=dict)
    meter: UsageMeter | None = None
    estimate: Callable[[Iterable[Cell]], Estimate] | None = None
    read: ReadsAnswers | None = None
    reply_limit: int | None = None
    free_text: bool | None = None
    probabilities: Callable[[Sequence[str]], Any] | None = None
    cosines: Callable[[Sequence[str]], Any] | None = None
    label: Callable[[Item, str], Any] | None = None
    prompt: Callable[[Cell], Any] | None = None
    known_passages: Mapping[str, Collection[str]] | None = None
    cells_share: Literal["nothing", "prompts", "answer"] | None = None
    model_to_load: str = ""
    model_and_prompt: Callable[[], Names | None]
    cut_texts: Callable[[], int]
    environment: Callable[[], Mapping[str, str] | None]


_LATE = frozenset(("model_and_prompt", "cut_texts", "environment"))
_SAID_AT_ONCE = tuple(each.name for each in fields(GraderTraits) if each.name not in _LATE)


def traits_of(grader: Grader) -> GraderTraits:
    """What a grader says of itself now, and the default of all that it does not say."""
    declared = getattr(grader, "traits", None)
    if isinstance(declared, GraderTraits):
        return declared
    values: dict[str, Any] = {name: getattr(grader, name, _LATE) for name in _SAID_AT_ONCE}
    values = {name: value for name, value in values.items() if value is not _LATE}
    values["item_kinds"] = frozenset(values.get("item_kinds", ITEM_KINDS))
    # Of a recording it is the prompt's name.
    values |= {} if callable(values.get("prompt")) else {"prompt": None}
    return GraderTraits(
        **values,
        model_and_prompt=partial(getattr, grader, "model_and_prompt", None),
        cut_texts=partial(getattr, grader, "cut", 0),
        environment=partial(getattr, grader, "environment", None),
    )
