"""Naive Cover and nCover, item by item, and a table that ir_measures reads."""

from __future__ import annotations

from collections import namedtuple
from fractions import Fraction

import ir_measures
from ir_measures import Measure

from trecexam.scores.ratings import QueryRatings

WEIGHT = {
    "equal": {"vital": 1, "okay": 1, "": 1},
    "vital": {"vital": 1, "okay": 0, "": 0},
    "importance": {"vital": 1, "okay": Fraction(1, 2), "": Fraction(1, 2)},
}


def naive_cover(
    q: QueryRatings, ranking: list[str], rel: int, k: int | None, partial: int | None, weights: str
) -> tuple[float, float]:
    """(Cover, nCover), item by item and passage by passage, in exact numbers."""
    ratings = dict(zip(q.doc_ids, q.ratings.tolist(), strict=True))
    assert q.importances is not None
    whole = covered = reachable = Fraction(0)
    for item, importance in enumerate(q.importances):
        weight = Fraction(WEIGHT[weights][importance])

        def credit(doc_ids: list[str], item: int = item) -> Fraction:
            found = [ratings[doc_id][item] for doc_id in doc_ids if doc_id in ratings]
            if any(rating >= rel for rating in found):
                return Fraction(1)
            half = partial is not None and any(rating >= partial for rating in found)
            return Fraction(1, 2) if half else Fraction(0)

        whole += weight
        covered += weight * credit(ranking[:k])
        reachable += weight * credit(list(ratings))
    return float(covered / whole) if whole else 0.0, float(covered / reachable) if reachable else 0.0


def as_run(rankings: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    return {q: {d: float(-rank) for rank, d in enumerate(docs)} for q, docs in rankings.items()}


def per_query(measure: Measure, qrels: object, run: object) -> dict[str, float]:
    return {m.query_id: m.value for m in ir_measures.iter_calc([measure], qrels, run)}


class Frame:
    """The subset of a pandas data frame that ir_measures uses to read one."""

    def __init__(self, rows: list[tuple[object, ...]], columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._row = namedtuple("_row", columns)
        self._rows = rows

    def itertuples(self) -> list[tuple[object, ...]]:
        return [self._row(*row) for row in self._rows]
