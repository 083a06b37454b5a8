"""Qrels rows -> one table a query: its passages, their labels, and their labels on each item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from ir_measures import Measure, Qrel
from ir_measures.util import QrelsConverter
from numpy.typing import NDArray

from trecexam.scores.labels import RubricQrel
from trecexam.scores.ratings import MAX_RATING

T = TypeVar("T")
#: What the second column of plain qrels holds, and what data frames make of none.
_NO_ITEM = frozenset(("0", "Q0", "", "0.0", "nan", "None", "<NA>"))
#: What a row of `Track.export.qrels_frame` has: a passage's rating on one item.
_RATED = frozenset(("query_id", "doc_id", "item_id", "rating"))
#: What a row of `trecexam.pyterrier.qrels` has, by ir_measures' names: a passage's ratings on all items.
_CARRYING = frozenset(("query_id", "doc_id", "relevance", "ratings"))


class QueryJudgments(NamedTuple):
    """The judgments of a query.

    Attributes:
        doc_ids: unique and ascending.
        labels: of the passages; `UNJUDGED` for a pooled passage without one.
        ratings: shape (passages, items), below 1 where there is no rating.
        importances: "vital", "okay" or "" for each item; None without any.
        weights: what the bank gives each item; None without any.
        at_least: see `QueryRatings`; ECover is computed on it.
        gains: what nDCG takes in place of labels, 0 where there is no label; None for the labels.
    """

    query_id: str
    doc_ids: Any
    labels: NDArray[np.int32]
    ratings: NDArray[np.integer]
    importances: tuple[str, ...] | None
    weights: tuple[float, ...] | None
    at_least: NDArray[np.float64] | None = None
    gains: NDArray[np.float64] | None = None


class ItemRows(NamedTuple):
    """Information on items from qrels rows without item ratings, for Cover.

    Attributes:
        unnamed: a query with a row that names no item; None where there is none.
        greatest: the greatest label of the rows that name an item; None where there are none.
    """

    unnamed: str | None = None
    greatest: int | None = None

    def check(self, measure: Measure) -> None:
        """Raises an error for a Cover or nCover that would be wrong on these rows.

        Raises:
            ValueError: a row names no item; or the rows say 0 or 1 of each item, and `rel` asks for more.
        """
        if self.unnamed is not None:
            raise ValueError(
                f"{measure} needs the rating of each item, and the qrels of query {self.unnamed!r} have rows "
                "that name no item (iteration 0, Q0 or none): pass track.qrels() or "
                "track.export.qrels_frame() of trecexam, or, with rel=1, rows whose iteration is the item "
                "(out/rubric.subtopics.qrels)"
            )
        if self.greatest is not None and self.greatest <= 1 < measure["rel"]:
            params = {key: value for key, value in measure.params.items() if key != "partial"}
            raise ValueError(
                f"{measure}: these qrels have 0 or 1 for each item, not its rating: use "
                f"{type(measure)(**{**params, 'rel': 1})} with rows made for that rating (trecexam export "
                f"subtopics --min-rating), or pass track.qrels() of trecexam"
            )


def rows_of(qrels: Any) -> list[Any]:
    """Rows of qrels, from any form that ir_measures accepts, or our data frames.

    Rows of one passage and item each, with `item_id` and `rating`, become one `RubricQrel` a passage; so do
    a frame's rows of a passage with its `ratings`.

    Raises:
        ValueError: they are no qrels; or a passage has two ratings on an item, or no row for one of the
            query's items, as in a frame with rows left out.
    """
    # Of a frame, ir_measures keeps four columns alone.
    columns = getattr(qrels, "columns", ())
    if hasattr(qrels, "itertuples") and set(columns) >= _RATED:
        defaults = (("rating", -1), ("importance", ""), ("weight", 1.0))
        missing = {name: value for name, value in defaults if name in columns}
        return _passages(qrels.fillna(missing).itertuples(index=False))
    if hasattr(qrels, "itertuples") and set(columns) >= _CARRYING:
        return [_carrying(row) for row in qrels.itertuples(index=False)]
    rows = list(QrelsConverter(qrels).as_namedtuple_iter())  # type: ignore[no-untyped-call]
    if rows and set(getattr(rows[0], "_fields", ())) >= _RATED:
        return _passages(rows)
    return rows


def _carrying(row: Any) -> Qrel:
    """A row of a passage with its ratings, or a plain row without any, as in joined frames."""
    fields = row.query_id, row.doc_id, int(row.relevance)
    if isinstance(row.ratings, str):
        raise ValueError(
            f"qrels of query {row.query_id!r}: the ratings of passage {row.doc_id!r} are text, "
            f"{row.ratings!r}; keep such a frame as parquet or pickle, or track.export.qrels_frame() as CSV"
        )
    if not hasattr(row.ratings, "__len__"):
        return Qrel(*fields)
    carried: dict[str, Any] = {name: getattr(row, name, None) for name in ("importances", "weights")}
    listed: dict[str, Any] = {
        name: tuple(of_items) if hasattr(of_items, "__len__") else None for name, of_items in carried.items()
    }
    return RubricQrel(*fields, ratings=tuple(row.ratings), **listed)


def _passages(rows: Iterable[Any]) -> list[RubricQrel]:
    """Combines rows of passage and item to a row per passage."""
    importances: dict[str, dict[str, str | None]] = {}
    weights: dict[str, dict[str, float | None]] = {}
    ratings: dict[tuple[str, str], dict[str, int]] = {}
    labels: dict[tuple[str, str], int] = {}
    for row in rows:
        if not hasattr(row, "label") and not hasattr(row, "relevance"):
            raise ValueError(
                "these qrels have ratings of items but no labels of passages: add a column `label`"
            )
        passage = row.query_id, row.doc_id
        importances.setdefault(row.query_id, {})[row.item_id] = getattr(row, "importance", None)
        weights.setdefault(row.query_id, {})[row.item_id] = getattr(row, "weight", None)
        rating = int(row.rating)
        if ratings.setdefault(passage, {}).setdefault(row.item_id, rating) != rating:
            raise ValueError(
                f"qrels of query {row.query_id!r}: passage {row.doc_id!r} has two ratings on item "
                f"{row.item_id!r}"
            )
        labels[passage] = int(row.label if hasattr(row, "label") else row.relevance)
    for (query_id, doc_id), of_passage in ratings.items():
        missing = next((item for item in importances[query_id] if item not in of_passage), None)
        if missing is not None:
            raise ValueError(
                f"qrels of query {query_id!r}: no row for passage {doc_id!r} and item {missing!r}; Cover "
                "needs one for each passage and item, with the rating -1 where there is none"
            )
    return [
        RubricQrel(
            *passage,
            labels[passage],
            ratings=tuple(map(of_passage.__getitem__, importances[passage[0]])),
            importances=_named(importances[passage[0]].values()),
            weights=_named(weights[passage[0]].values()),
        )
        for passage, of_passage in ratings.items()
    ]


def _named(of_items: Iterable[T | None]) -> tuple[T, ...] | None:
    named = tuple(each for each in of_items if each is not None)
    return named or None


def tables(rows: Iterable[Any], query_ids: Iterable[str] = ()) -> tuple[list[QueryJudgments], ItemRows]:
    """Return a table for each query, the given ones first, and what the rows say of items.

    The items of a query are its rows' iterations, in the order in which these appear first among all
    rows, which is the order in which pyndeval adds up gains.

    Raises:
        ValueError: of one query only some rows carry ratings, or unequally many, or rows differ in the
            items' importance or weights.
    """
    by_query: dict[str, list[Any]] = {query_id: [] for query_id in query_ids}
    subtopics: dict[str, int] = {}
    for row in rows:
        by_query.setdefault(row.query_id, []).append(row)
        subtopics.setdefault(getattr(row, "iteration", "0"), len(subtopics))
    made = [_table(query_id, of_query, subtopics) for query_id, of_query in by_query.items()]
    plain = [row for of_query in by_query.values() for row in of_query if not hasattr(row, "ratings")]
    unnamed = (row.query_id for row in plain if str(getattr(row, "iteration", "0")) in _NO_ITEM)
    return made, ItemRows(next(unnamed, None), max((row.relevance for row in plain), default=None))


def _table(query_id: str, rows: Sequence[Any], subtopics: dict[str, int]) -> QueryJudgments:
    best: dict[str, int] = {}
    for row in rows:
        best[row.doc_id] = max(row.relevance, best.get(row.doc_id, row.relevance))
    doc_ids = sorted(best)
    labels = np.array([best[doc_id] for doc_id in doc_ids], np.int32)
    row_index = {doc_id: i for i, doc_id in enumerate(doc_ids)}
    if any(hasattr(row, "ratings") for row in rows):
        carried = _carried(query_id, rows, row_index)
        at_least = _probabilities(rows, row_index, carried[0].shape[1])
        return QueryJudgments(query_id, doc_ids, labels, *carried, at_least)
    names = sorted({getattr(row, "iteration", "0") for row in rows}, key=subtopics.__getitem__)
    column = {name: i for i, name in enumerate(names)}
    ratings = np.full((len(doc_ids), len(names)), -1, np.int32)
    for row in rows:
        cell = row_index[row.doc_id], column[getattr(row, "iteration", "0")]
        ratings[cell] = max(ratings[cell], row.relevance)
    return QueryJudgments(query_id, doc_ids, labels, ratings, None, None)


def _carried(
    query_id: str, rows: Sequence[Any], row_index: dict[str, int]
) -> tuple[NDArray[np.integer], tuple[str, ...] | None, tuple[float, ...] | None]:
    """The ratings in rows, and the items' importances and weights."""
    if not all(hasattr(row, "ratings") for row in rows):
        raise ValueError(f"qrels of query {query_id!r}: only some rows carry item ratings")
    n_items = len(rows[0].ratings)
    if any(len(row.ratings) != n_items for row in rows):
        raise ValueError(f"qrels of query {query_id!r}: rows carry unequally many ratings")
    for name, what in (("importances", "importance"), ("weights", "weights")):
        of_items = getattr(rows[0], name, None)
        if any(getattr(row, name, None) != of_items for row in rows):
            raise ValueError(f"qrels of query {query_id!r}: rows differ in the items' {what}")
        if of_items is not None and len(of_items) != n_items:
            raise ValueError(
                f"qrels of query {query_id!r}: rows carry {n_items} ratings and {len(of_items)} {name}"
            )
    ratings = np.full((len(row_index), n_items), -1, np.int8)
    for row in rows:
        ratings[row_index[row.doc_id]] = row.ratings
    return ratings, getattr(rows[0], "importances", None), getattr(rows[0], "weights", None)


def _probabilities(
    rows: Sequence[Any], row_index: dict[str, int], n_items: int
) -> NDArray[np.float64] | None:
    """`QueryRatings.at_least` of the rows; None if a row lacks probabilities."""
    carried: list[Any] = [getattr(row, "at_least", None) for row in rows]
    if any(each is None for each in carried):
        return None
    at_least = np.zeros((len(row_index), n_items, MAX_RATING))
    for row, each in zip(rows, carried, strict=True):
        at_least[row_index[row.doc_id]] = np.reshape(each, (n_items, MAX_RATING))
    return at_least
