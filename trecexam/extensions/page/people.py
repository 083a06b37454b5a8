"""Ratings by people on the page: the choices, and what a rating is checked against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from converters.nuggets import RATINGS
from converters.records import Item
from trecexam.features.override import overriding
from trecexam.inputs.overrides import rubric_names

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View


#: Ratings of a nugget on the scale 0..5, with their keys.
_NUGGET = (("1", "support", "support"), ("2", "partial", "partial_support"), ("3", "not", "not_support"))


class Choice(NamedTuple):
    """A possible rating: its key, its value, and its name ("" for the value itself)."""

    key: str
    value: int
    text: str


def words_of(view: View, *, whole: bool) -> tuple[str, ...]:
    """Return names of the ratings 0, 1, ... of a cell or of a `whole` passage; () for numbers."""
    return view.scale.names if whole and view.scale is not None else view.words


def choices(view: View, item: Item | None) -> tuple[Choice, ...]:
    """Return the possible ratings of an item, or with None of a whole passage.

    Passages are judged on the scale of [judging] or of the official judgments, else in words of the rubric.
    """
    if item is not None and item.kind == "nugget" and view.max_rating == RATINGS["support"]:
        return tuple(Choice(key, RATINGS[label] or 0, text) for key, text, label in _NUGGET)
    names = () if item else view.scale.names if view.scale else rubric_names(view.max_rating)
    if names and (view.scale or not view.words):
        return tuple(Choice(str(value), value, name) for value, name in enumerate(names))
    if view.words:
        best_first = reversed(list(enumerate(view.words)))
        named = ((value, word.replace("_", " ")) for value, word in best_first)
        return tuple(Choice(str(key), *each) for key, each in enumerate(named, 1))
    return tuple(Choice(str(value), value, "") for value in range(view.max_rating + 1))


def text_of(rating: int, choices: Iterable[Choice]) -> str:
    """Return a rating in words."""
    return next((choice.text for choice in choices if choice.value == rating), "") or str(rating)


def standing(view: View, state: QueryView) -> overriding.QueryToRate:
    """Return a query with its current ratings."""
    cells = None
    if view.is_cited:
        cells = frozenset(
            (state.query_id, doc_id, item.item_id)
            for row_index, doc_id in enumerate(state.doc_ids)
            for _, item in state.items_of(row_index)
        )
    return overriding.QueryToRate(
        state.query_id,
        state.items,
        state.retired,
        dict(zip(state.doc_ids, state.keys, strict=True)),
        view.depth,
        view.max_rating,
        tuple(view.queries),
        cells,
        view.scale,
    )
