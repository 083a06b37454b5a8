"""Which run covers which item: the cells behind Cover, and what tells a useful item from an idle one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.ratings import QueryRatings


def covered_items(q: QueryRatings, ranks: NDArray[np.int32], min_rating: int) -> NDArray[np.bool_]:
    """Whether one of a ranking's passages is rated min_rating or better on an item.

    The mean of a row is `Cover(rel=min_rating)` of the run on the query, where the ranking is cut at its
    cutoff.

    Args:
        ranks: of shape (n_runs, depth): of each run the rows in `q.ratings` of the passages that count; -1
            where there is none.

    Returns:
        Shape (n_runs, n_items).
    """
    # Row -1 is the one after the last, which reaches nothing.
    reached = np.vstack([q.ratings >= min_rating, np.zeros((1, q.n_items), np.bool_)])
    return np.asarray(reached[ranks].any(axis=1), np.bool_)
