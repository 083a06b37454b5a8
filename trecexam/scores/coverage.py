"""Which run covers which item: the cells behind Cover, and what tells a useful item from an idle one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.cover_kernel import best_ratings
from trecexam.scores.ratings import QueryRatings


def covered_items(q: QueryRatings, rankings: Iterable[Sequence[str]], min_rating: int) -> NDArray[np.bool_]:
    """Whether one of a ranking's passages is rated min_rating or better on an item.

    The mean of a row is `Cover(rel=min_rating)` of the run on the query, where the ranking is cut at its
    cutoff.

    Args:
        rankings: of each run the doc_ids that count; () where it skips the query.

    Returns:
        Shape (n_runs, n_items).
    """
    row = {doc_id: number for number, doc_id in enumerate(q.doc_ids)}
    best = [
        best_ratings(q.ratings, np.array([row.get(doc_id, -1) for doc_id in ranking], np.intp))
        for ranking in rankings
    ]
    return np.array(best, np.int8).reshape(len(best), q.n_items) >= min_rating
