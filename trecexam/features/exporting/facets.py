"""Ratings by facet: those of a facet's own items, as if it were a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment
    from trecexam.scores.ratings import QueryRatings


def facet_ratings(track: Assessment) -> list[QueryRatings]:
    """The ratings of each facet of the bank, in the bank's order; the query id is `query/facet`.

    Every pooled passage of the query is there. A person's rating of a passage as a whole is of the query, and
    so of no facet. Items without a facet are left out. After the Rubric workbench's `--qrel-query-facets`.

    Raises:
        TrecexamError: no item has a facet, or one has white space in it, which qrels cannot have.
    """
    facets = list(_facets(track))
    if not facets:
        raise TrecexamError(
            "no item of the bank has a facet: give items a `facet_id`, or set facets = true in [track] where "
            "its query ids are query/facet",
            path=track.folder.root,
        )
    return facets


def without_facet(track: Assessment) -> int:
    """How many items have no facet, and are in no labels by facet."""
    return sum(not item.facet_id for items in track.bank.items.values() for item in items)


def _facets(track: Assessment) -> Iterator[QueryRatings]:
    for q in track.ratings():
        columns: dict[str, list[int]] = {}
        for column, item in enumerate(track.sheets[q.query_id].items):
            if item.facet_id:
                columns.setdefault(item.facet_id, []).append(column)
        for facet_id, chosen in columns.items():
            if facet_id.split() != [facet_id]:
                raise TrecexamError(
                    f"the facet {facet_id!r} of query '{q.query_id}' has white space in it, which no query "
                    "id of qrels can have; give it a `facet_id` without",
                    path=track.folder.root,
                )
            yield replace(
                q,
                query_id=f"{q.query_id}/{facet_id}",
                n_items=len(chosen),
                ratings=q.ratings[:, chosen],
                human={},
                importances=q.importances and tuple(q.importances[column] for column in chosen),
                weights=q.weights and tuple(q.weights[column] for column in chosen),
            )
