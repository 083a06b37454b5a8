"""Judgments as columns: every judged passage of every query, with its label."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import ir_measures
import numpy as np
from numpy.typing import NDArray
from pyarrow.compute import SetLookupOptions

from converters.arrow import strings
from converters.records import Qrel
from trecexam.scores.expected import gains
from trecexam.scores.from_rows import ItemRows, QueryJudgments, tables
from trecexam.scores.labels import UNJUDGED, LabelRule, label_array
from trecexam.scores.ratings import QueryRatings

__all__ = ["UNJUDGED", "Judged"]


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
    def from_qrels(cls, rows: Iterable[Qrel | ir_measures.Qrel], query_ids: Iterable[str] = ()) -> Judged:
        """Judgments from rows with query_id, doc_id and relevance, of `converters` or `ir_measures`.

        Where a passage stands several times for a query, its best label counts. A row's `iteration`, if it
        has any, is the item (subtopic) that its label is of; rows that all carry `ratings`
        (`trecexam.scores.RubricQrel`) have these as items instead.

        Args:
            query_ids: queries that shall be there even if they have no row; they come first.

        Raises:
            ValueError: of one query only some rows carry ratings, or unequally many, or rows differ in the
                items' importance.
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
        """Judgments from ratings of pooled passages, with the labels of `trecexam.scores.labels.labels`.

        Passages without any rating are there, `UNJUDGED`. With "expected" nDCG takes the gains of
        `trecexam.scores.expected.gains`.

        Raises:
            ValueError: an unknown rule, or min_answers below 1.
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
        """Whether each query has a labelled passage; measures ignore other queries."""
        labelled = np.concatenate(([0], np.cumsum(self.labels != UNJUDGED)))
        return np.asarray(np.diff(labelled[self.offsets]) > 0, np.bool_)

    @cached_property
    def query_of_row(self) -> NDArray[np.intp]:
        """The query index of each passage."""
        return np.repeat(np.arange(len(self.query_ids)), np.diff(self.offsets))

    @cached_property
    def lookups(self) -> list[Any]:
        """Each query's doc_ids as pyarrow options of `index_in`, cached because they are slow to make."""
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
        """All ratings: shape (passages + 1, most items of a query), -1 beyond a query's items.

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
