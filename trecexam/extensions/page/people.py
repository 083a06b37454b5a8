"""What people say on the page: taken from what they saw, and shown before the track is read again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trecexam.features.override import overriding
from trecexam.line.sheets import REFUSED, UNPARSED
from trecexam.scores.labels import labels
from trecexam.scores.ratings import MISSING, QueryRatings

if TYPE_CHECKING:
    from trecexam.extensions.page.view import QueryView, View
    from trecexam.track import TrackFolder


def standing(view: View, state: QueryView) -> overriding.QueryToRate:
    """A query as somebody sees it on the page."""
    return overriding.QueryToRate(
        state.query_id,
        state.items,
        state.retired,
        dict(zip(state.doc_ids, state.keys, strict=True)),
        view.settings.depth,
        view.settings.max_rating,
        tuple(view.query_ids),
    )


def with_people(folder: TrackFolder, view: View, state: QueryView) -> QueryView:
    """The query with what people say by overrides.tsv as it is now; scores of runs stay as they were."""
    import numpy as np

    overrides = overriding.overrides_of(folder, standing(view, state))
    query_overrides = overrides.queries.get(state.query_id)
    instead = {"zero": 0, "seed": 1, "skip": MISSING}[view.settings.unparsed]
    unread = (state.codes == UNPARSED) | (state.codes == REFUSED)
    ratings = np.where(unread, instead, np.maximum(state.codes, MISSING)).astype(np.int8)
    columns = {item.item_id: column for column, item in enumerate(state.items)}
    for (doc_id, item_id), rating in (query_overrides.cells if query_overrides else {}).items():
        place = state.place(doc_id)
        assert place is not None
        ratings[place, columns[item_id]] = rating
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
            for known in (overrides, overriding.judgments_of(folder, standing(view, state)))
            for (_, doc_id, item_id), row in known.ratings.items()
        },
    )
