"""Judgments as columns: every judged passage of every query with its label, from ratings or rows of qrels."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from ir_measures import Measure, Qrel
from ir_measures.util import QrelsConverter
from numpy.typing import NDArray
from pyarrow.compute import SetLookupOptions

from converters import records
from converters.arrow import strings
from trecexam.scores.expected import gains
from trecexam.scores.labels import UNJUDGED, LabelRule, RubricQrel, label_array
from trecexam.scores.ratings import MAX_RATING, QueryRatings

__all__ = ["UNJUDGED", "Judged"]


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
    importances: tuple[str, ...] | None = None
    weights: tuple[float, ...] | None = None
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
        """Refuse a Cover or nCover that would be wrong on these rows."""
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


@dataclass(frozen=True, eq=False)
class Judged:
    """The judgments of some queries.

    Attributes:
        query_ids: the queries; unique.
        offsets: int64, len(query_ids) + 1: the passages of query i are offsets[i]:offsets[i + 1].
        doc_ids: pyarrow large_string array of all passages; unique and ascending within a query.
        labels: int32, len(doc_ids); `UNJUDGED` where a passage is in the pool without having a label.
        tables: what is known of each query's items, see `QueryJudgments`; () where nothing is. Cover and
            alpha_nDCG are computed on it.
        min_rating: the rating that alpha_nDCG(rel=1) takes for 1, as `subtopic_qrels` does; None where
            ratings are labels of subtopics, which alpha_nDCG compares with its `rel`.
        gains: float64, len(doc_ids): what nDCG takes in place of labels, 0 where there is no label; None for
            the labels.
        item_rows: what rows without ratings of items say of items; Cover is refused where that is too little.
    """

    query_ids: tuple[str, ...]
    offsets: NDArray[np.int64]
    doc_ids: Any
    labels: NDArray[np.int32]
    tables: tuple[QueryJudgments, ...] = ()
    min_rating: int | None = None
    item_rows: ItemRows = field(default_factory=ItemRows)
    gains: NDArray[np.float64] | None = None

    @classmethod
    def from_qrels(cls, rows: Iterable[records.Qrel | Qrel], query_ids: Iterable[str] = ()) -> Judged:
        """Return judgments from rows with query_id, doc_id and relevance, of `converters` or `ir_measures`.

        Where a passage stands several times for a query, its best label counts. A row's `iteration`, if it
        has any, is the item (subtopic) that its label is of; rows that all carry `ratings`
        (`trecexam.scores.RubricQrel`) have these as items instead.

        Args:
            query_ids: queries that shall be there even if they have no row; they come first.

        Raises:
            ValueError: of one query only some rows carry ratings, or unequally many, or rows differ in the
                items' importances or weights.
        """
        made, item_rows = tables(rows, query_ids)
        return replace(cls._from_tables(made), item_rows=item_rows)

    @classmethod
    def from_ratings(
        cls,
        queries: Iterable[QueryRatings],
        rule: LabelRule = "max",
        min_rating: int = 4,
        min_answers: int = 1,
    ) -> Judged:
        """Return judgments from ratings of pooled passages, with labels of `trecexam.scores.labels.labels`.

        Passages without any rating are there, `UNJUDGED`. With "expected" nDCG takes the gains of
        `trecexam.scores.expected.gains`.
        """
        made = [
            QueryJudgments(
                q.query_id,
                q.doc_ids,
                label_array(q, rule, min_rating, min_answers),
                q.ratings,
                q.importances,
                q.weights,
                q.at_least,
                np.nan_to_num(gains(q, min_answers)) if rule == "expected" else None,
            )
            for q in queries
        ]
        return replace(cls._from_tables(made), min_rating=min_rating)

    @classmethod
    def _from_tables(cls, made: Sequence[QueryJudgments]) -> Judged:
        lengths = [len(table.labels) for table in made]
        gained = [table.gains for table in made if table.gains is not None]
        return cls(
            tuple(table.query_id for table in made),
            np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            strings([doc_id for table in made for doc_id in table.doc_ids]),
            np.concatenate([np.empty(0, np.int32), *(table.labels for table in made)]),
            tuple(made),
            gains=np.concatenate(gained) if gained else None,
        )

    @cached_property
    def has_labels(self) -> NDArray[np.bool_]:
        """Return True where each query has a labelled passage; measures ignore other queries."""
        labelled = np.concatenate(([0], np.cumsum(self.labels != UNJUDGED)))
        return np.asarray(np.diff(labelled[self.offsets]) > 0, np.bool_)

    @cached_property
    def query_of_row(self) -> NDArray[np.intp]:
        """The query index of each passage."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def lookups(self) -> list[Any]:
        """Return each query's doc_ids as pyarrow options of `index_in`, which are slow to make."""
        bounds = self.offsets.tolist()
        return [SetLookupOptions(self.doc_ids[start:end]) for start, end in itertools.pairwise(bounds)]

    @cached_property
    def padded_labels(self) -> NDArray[np.int32]:
        """The labels with `UNJUDGED` appended, for row -1."""
        return np.append(self.labels, np.int32(UNJUDGED))

    @property
    def of_items(self) -> tuple[NDArray[np.integer], ...]:
        """The ratings of each query; ValueError where nothing is known of items."""
        if self.query_ids and not self.tables:
            raise ValueError("these judgments have no ratings of items, which Cover and alpha_nDCG need")
        return tuple(table.ratings for table in self.tables)

    @cached_property
    def items(self) -> NDArray[np.integer]:
        """Return all ratings: shape (passages + 1, most items of a query), -1 beyond a query's items.

        The last row has no rating, so that row -1 reaches no item.
        """
        width = int(self.n_items.max(initial=0))
        kind = np.result_type(np.int8, *{matrix.dtype for matrix in self.of_items})
        padded = np.full((len(self.labels) + 1, width), -1, kind)
        for start, matrix in zip(self.offsets.tolist(), self.of_items, strict=False):
            padded[start : start + matrix.shape[0], : matrix.shape[1]] = matrix
        return padded

    @cached_property
    def n_items(self) -> NDArray[np.int64]:
        """The number of items of each query."""
        return np.array([matrix.shape[1] for matrix in self.of_items], np.int64)


def rows_of(qrels: Any) -> list[Any]:
    """Return rows of qrels, from any form that ir_measures accepts, or our data frames.

    Rows of one passage and item each, with `item_id` and `rating`, become one `RubricQrel` a passage; so do
    a frame's rows of a passage with its `ratings`. A ValueError says that they are no qrels, or that a
    passage has two ratings on an item, or no row for one of the query's items.
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
    """Combine rows per passage and item into a row per passage."""
    items: dict[str, dict[str, None]] = {}
    importances: dict[str, dict[str, Any]] = {}
    weights: dict[str, dict[str, Any]] = {}
    ratings: dict[tuple[str, str], dict[str, int]] = {}
    labels: dict[tuple[str, str], int] = {}
    for row in rows:
        if not hasattr(row, "label") and not hasattr(row, "relevance"):
            raise ValueError(
                "these qrels have ratings of items but no labels of passages: add a column `label`"
            )
        passage = row.query_id, row.doc_id
        items.setdefault(row.query_id, {})[row.item_id] = None
        for of_items, name in ((importances, "importance"), (weights, "weight")):
            if (value := getattr(row, name, None)) is not None:
                of_items.setdefault(row.query_id, {})[row.item_id] = value
        rating = int(row.rating)
        if ratings.setdefault(passage, {}).setdefault(row.item_id, rating) != rating:
            raise ValueError(
                f"qrels of query {row.query_id!r}: passage {row.doc_id!r} has two ratings on item "
                f"{row.item_id!r}"
            )
        labels[passage] = int(row.label if hasattr(row, "label") else row.relevance)
    for (query_id, doc_id), of_passage in ratings.items():
        missing = next((item for item in items[query_id] if item not in of_passage), None)
        if missing is not None:
            raise ValueError(
                f"qrels of query {query_id!r}: no row for passage {doc_id!r} and item {missing!r}; Cover "
                "needs one for each passage and item, with the rating -1 where there is none"
            )
    return [
        RubricQrel(
            *passage,
            labels[passage],
            ratings=tuple(map(of_passage.__getitem__, items[passage[0]])),
            importances=tuple(importances.get(passage[0], {}).values()) or None,
            weights=tuple(weights.get(passage[0], {}).values()) or None,
        )
        for passage, of_passage in ratings.items()
    ]


def tables(rows: Iterable[Any], query_ids: Iterable[str] = ()) -> tuple[list[QueryJudgments], ItemRows]:
    """Return a table for each query, the given ones first, and what the rows say of items.

    The items of a query are its rows' iterations, in the order in which these appear first among all
    rows, which is the order in which pyndeval adds up gains.
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
        return QueryJudgments(query_id, doc_ids, labels, *_carried(query_id, rows, row_index))
    names = sorted({getattr(row, "iteration", "0") for row in rows}, key=subtopics.__getitem__)
    column = {name: i for i, name in enumerate(names)}
    ratings = np.full((len(doc_ids), len(names)), -1, np.int32)
    for row in rows:
        cell = row_index[row.doc_id], column[getattr(row, "iteration", "0")]
        ratings[cell] = max(ratings[cell], row.relevance)
    return QueryJudgments(query_id, doc_ids, labels, ratings)


def _carried(query_id: str, rows: Sequence[Any], row_index: dict[str, int]) -> tuple[Any, ...]:
    """Return the ratings that rows carry, the items' importances and weights, and the probabilities."""
    if not all(hasattr(row, "ratings") for row in rows):
        raise ValueError(f"qrels of query {query_id!r}: only some rows carry item ratings")
    n_items = len(rows[0].ratings)
    if any(len(row.ratings) != n_items for row in rows):
        raise ValueError(f"qrels of query {query_id!r}: rows carry unequally many ratings")
    of_items = {name: getattr(rows[0], name, None) for name in ("importances", "weights")}
    for name, values in of_items.items():
        if any(getattr(row, name, None) != values for row in rows):
            raise ValueError(f"qrels of query {query_id!r}: rows differ in the items' {name}")
        if values is not None and len(values) != n_items:
            raise ValueError(
                f"qrels of query {query_id!r}: rows carry {n_items} ratings and {len(values)} {name}"
            )
    ratings = np.full((len(row_index), n_items), -1, np.int8)
    at_least: NDArray[np.float64] | None = np.zeros((len(row_index), n_items, MAX_RATING))
    for row in rows:
        ratings[row_index[row.doc_id]] = row.ratings
        chances = getattr(row, "at_least", None)
        if chances is None:
            at_least = None
        elif at_least is not None:
            at_least[row_index[row.doc_id]] = np.reshape(chances, (n_items, MAX_RATING))
    return ratings, *of_items.values(), at_least
