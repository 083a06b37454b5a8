"""The ratings of a query's pooled passages on its items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

#: In a ratings matrix where there is no rating.
MISSING = -1
#: The best rating there is.
MAX_RATING = 5


@dataclass(frozen=True, eq=False)
class QueryRatings:
    """The ratings of one query's pool.

    Attributes:
        query_id: the query.
        doc_ids: the pooled passages, sorted.
        n_items: how many items (questions, nuggets) the query's test bank has.
        ratings: int8 of shape (len(doc_ids), n_items), items in the bank's order; 0..5, or -1 where
            there is no rating. A cell that a person rated has that rating.
        human: doc_id -> the rating 0..5 that a person gave the passage as a whole, for the query itself.
        importances: "vital", "okay" or "" of each item; None where nothing is known of it.
        at_least: float64 of shape (len(doc_ids), n_items, 5): how probable it is that the passage is rated
            1, 2, .. 5 or better on the item; 0 where there is no rating, and 0 or 1 where it is certain.
            None where nobody asked: `trecexam.scores.expected` takes all ratings as certain then.
        weights: of each item as the bank has them, 1 if missing; None if no item has one.

    Raises:
        ValueError: a matrix has another shape or type, or a value outside -1..5.
    """

    query_id: str
    doc_ids: tuple[str, ...]
    n_items: int
    ratings: NDArray[np.int8]
    human: Mapping[str, int] = field(default_factory=dict)
    importances: tuple[str, ...] | None = None
    at_least: NDArray[np.float64] | None = None
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        shape, of_query = (len(self.doc_ids), self.n_items), f"ratings of query {self.query_id!r}:"
        if self.ratings.shape != shape or self.ratings.dtype != np.int8:
            found = f"{self.ratings.dtype} of shape {self.ratings.shape}"
            raise ValueError(f"{of_query} int8 of shape {shape} needed, found {found}")
        if self.ratings.size and not (self.ratings.min() >= MISSING and self.ratings.max() <= MAX_RATING):
            raise ValueError(f"{of_query} a value outside {MISSING}..{MAX_RATING}")
        if self.at_least is not None and self.at_least.shape != (*shape, MAX_RATING):
            needed = (*shape, MAX_RATING)
            raise ValueError(
                f"{of_query} probabilities of shape {needed} needed, found {self.at_least.shape}"
            )
        for name in ("importances", "weights"):
            of_items = getattr(self, name)
            if of_items is not None and len(of_items) != self.n_items:
                raise ValueError(f"{of_query} {len(of_items)} {name} of {self.n_items} items")
        unknown = self.human.keys() - set(self.doc_ids) if self.human else ()
        if unknown or any(not 0 <= rating <= MAX_RATING for rating in self.human.values()):
            raise ValueError(f"human {of_query} outside its pool or 0..{MAX_RATING}")

    @property
    def rated(self) -> NDArray[np.bool_]:
        """Return True where each passage has a rating, of an item or as a whole; shape (len(doc_ids),)."""
        rated = np.asarray((self.ratings >= 0).any(axis=1), np.bool_)
        if self.human:
            rated |= np.array([doc_id in self.human for doc_id in self.doc_ids], np.bool_)
        return rated
