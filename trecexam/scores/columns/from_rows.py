"""Qrels rows -> one table a query: its passages, their labels, and their labels on each item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class QueryJudgments(NamedTuple):
    """One query's judgments; the fields are those of `Judged`, of this query alone."""

    query_id: str
    doc_ids: Any
    labels: NDArray[np.int32]
    ratings: NDArray[np.integer]
    importances: tuple[str, ...] | None


def tables(rows: Iterable[Any], query_ids: Iterable[str] = ()) -> list[QueryJudgments]:
    """A table for each query, the given ones first, then in the order of their first rows.

    The items of a query are its rows' iterations, in the order in which these appear first among all
    rows, which is the order in which pyndeval adds up gains.

    Raises:
        ValueError: as `Judged.from_qrels`.
    """
    by_query: dict[str, list[Any]] = {query_id: [] for query_id in query_ids}
    subtopics: dict[str, int] = {}
    for row in rows:
        by_query.setdefault(row.query_id, []).append(row)
        subtopics.setdefault(getattr(row, "iteration", "0"), len(subtopics))
    return [_table(query_id, of_query, subtopics) for query_id, of_query in by_query.items()]


def _table(query_id: str, rows: Sequence[Any], subtopics: dict[str, int]) -> QueryJudgments:
    best: dict[str, int] = {}
    for row in rows:
        best[row.doc_id] = max(row.relevance, best.get(row.doc_id, row.relevance))
    doc_ids = sorted(best)
    labels = np.array([best[doc_id] for doc_id in doc_ids], np.int32)
    place = {doc_id: i for i, doc_id in enumerate(doc_ids)}
    if any(hasattr(row, "ratings") for row in rows):
        return QueryJudgments(query_id, doc_ids, labels, *_carried(query_id, rows, place))
    names = sorted({getattr(row, "iteration", "0") for row in rows}, key=subtopics.__getitem__)
    column = {name: i for i, name in enumerate(names)}
    ratings = np.full((len(doc_ids), len(names)), -1, np.int32)
    for row in rows:
        cell = place[row.doc_id], column[getattr(row, "iteration", "0")]
        ratings[cell] = max(ratings[cell], row.relevance)
    return QueryJudgments(query_id, doc_ids, labels, ratings, None)


def _carried(
    query_id: str, rows: Sequence[Any], place: dict[str, int]
) -> tuple[NDArray[np.integer], tuple[str, ...] | None]:
    """The ratings that rows carry, and the importances of the items."""
    if not all(hasattr(row, "ratings") for row in rows):
        raise ValueError(f"qrels of query {query_id!r}: only some rows carry item ratings")
    n_items = len(rows[0].ratings)
    importances: tuple[str, ...] | None = getattr(rows[0], "importances", None)
    if any(len(row.ratings) != n_items for row in rows):
        raise ValueError(f"qrels of query {query_id!r}: rows carry unequally many ratings")
    if any(getattr(row, "importances", None) != importances for row in rows):
        raise ValueError(f"qrels of query {query_id!r}: rows differ in the items' importance")
    if importances is not None and len(importances) != n_items:
        raise ValueError(
            f"qrels of query {query_id!r}: rows carry {n_items} ratings and {len(importances)} importances"
        )
    ratings = np.full((len(place), n_items), -1, np.int8)
    for row in rows:
        ratings[place[row.doc_id]] = row.ratings
    return ratings, importances
