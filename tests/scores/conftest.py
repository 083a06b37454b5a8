"""Random ratings and rankings, and a naive view of them: plain dicts and sets."""

from __future__ import annotations

import random

import numpy as np
import pytest

from trecexam.scores.ratings import QueryRatings


def make_queries(seed: int = 0, n_queries: int = 5, n_docs: int = 30, n_items: int = 6) -> list[QueryRatings]:
    """Queries q1.. over passages d00..; a tenth of the passages have no rating, some miss a few."""
    rng = random.Random(seed)
    queries = []
    for number in range(1, n_queries + 1):
        rows = []
        for _ in range(n_docs):
            row = [rng.choice((-1, 0, 0, 1, 1, 2, 3, 4, 5)) for _ in range(n_items)]
            rows.append([-1] * n_items if rng.random() < 0.1 else row)
        doc_ids = tuple(f"d{doc:02}" for doc in range(n_docs))
        matrix = np.array(rows, np.int8).reshape(n_docs, n_items)
        queries.append(QueryRatings(f"q{number}", doc_ids, n_items, matrix))
    return queries


def make_ranking(q: QueryRatings, seed: int, length: int = 25) -> list[str]:
    """Pooled passages and some that aren't, shuffled."""
    pooled = [*q.doc_ids, *(f"x{number}" for number in range(8))]
    return random.Random(f"{q.query_id}{seed}").sample(pooled, min(length, len(pooled)))


@pytest.fixture
def queries() -> list[QueryRatings]:
    return make_queries()


@pytest.fixture
def rankings(queries: list[QueryRatings]) -> dict[str, list[str]]:
    return {q.query_id: make_ranking(q, 1) for q in queries}
