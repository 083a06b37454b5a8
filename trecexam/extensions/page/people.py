"""Ratings by people on the page: choices, conflicts, and showing them before the track is read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from trecexam.features.override import overriding
from trecexam.folder import TrackFolder
from trecexam.grades.sheets import REFUSED, UNPARSED
from trecexam.inputs.overrides import rubric_names
from trecexam.scores.labels import labels
from trecexam.scores.ratings import MISSING, QueryRatings

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View


class Choice(NamedTuple):
    """A possible rating: its key, its value, and its name ("" for the value itself)."""

    key: str
    value: int
    text: str


def words_of(view: View, *, whole: bool) -> tuple[str, ...]:
    """Return what people call the ratings 0, 1, ... of a cell or of a `whole` passage; () for numbers."""
    return view.scale.names if whole and view.scale is not None else view.words


def choices(view: View, *, whole: bool) -> tuple[Choice, ...]:
    """Return the possible ratings of a cell or of a `whole` passage.

    Passages are judged on the scale of [judging] or of the official judgments, else in words of the rubric.
    """
    names = () if not whole else view.scale.names if view.scale else rubric_names(view.settings.max_rating)
    if names and (view.scale or not view.words):
        return tuple(Choice(str(value), value, name) for value, name in enumerate(names))
    if view.words:
        best_first = reversed(list(enumerate(view.words)))
        named = ((value, word.replace("_", " ")) for value, word in best_first)
        return tuple(Choice(str(key), *each) for key, each in enumerate(named, 1))
    return tuple(Choice(str(value), value, "") for value in range(view.settings.max_rating + 1))


def text_of(rating: int, choices: Iterable[Choice]) -> str:
    """A rating in words."""
    return next((choice.text for choice in choices if choice.value == rating), "") or str(rating)


def standing(view: View, state: QueryView) -> overriding.QueryToRate:
    """A query with its current ratings."""
    cells = None
    if view.is_cited:
        cells = frozenset(
            (state.query_id, doc_id, item.item_id)
            for row_index, doc_id in enumerate(state.doc_ids)
            for _, item in state.asked(row_index)
        )
    return overriding.QueryToRate(
        state.query_id,
        state.items,
        state.retired,
        dict(zip(state.doc_ids, state.keys, strict=True)),
        view.settings.depth,
        view.settings.max_rating,
        tuple(view.queries),
        cells,
        view.scale,
    )


def with_people(folder: TrackFolder, view: View, state: QueryView) -> QueryView:
    """The query with people's ratings read from the file again; scores of runs are not updated."""
    import numpy as np

    query = standing(view, state)
    overrides = overriding.overrides_of(folder, query)
    query_overrides = overrides.queries.get(state.query_id)
    instead = {"zero": 0, "seed": 1, "skip": MISSING}[view.settings.unparsed]
    unread = (state.codes == UNPARSED) | (state.codes == REFUSED)
    ratings = np.where(unread, instead, np.maximum(state.codes, MISSING)).astype(np.int8)
    columns = {item.item_id: column for column, item in enumerate(state.items)}
    for (doc_id, item_id), rating in (query_overrides.cells if query_overrides else {}).items():
        row_index = state.place(doc_id)
        assert row_index is not None
        ratings[row_index, columns[item_id]] = rating
    q = QueryRatings(
        state.query_id,
        state.doc_ids,
        len(state.items),
        ratings,
        human=query_overrides.passages if query_overrides else {},
    )
    settings = view.settings
    label = labels(q, settings.label, settings.min_rating, settings.min_answers)
    return replace(
        state,
        ratings=ratings,
        labels=tuple(label.get(doc_id) for doc_id in state.doc_ids),
        human={
            (doc_id, item_id): row
            for judgments in (overrides, overriding.judgments_of(folder, query))
            for (_, doc_id, item_id), row in judgments.ratings.items()
            # On a page with a scale of judgments, others of whole passages are on another one.
            if item_id or view.scale is None or judgments is not overrides
        },
    )
