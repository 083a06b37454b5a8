"""Weights of passages by how many runs retrieve them, and at which ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: What a run adds to the passage at each rank; nothing to those below.
WEIGHTS = np.concatenate([1 / np.log2(np.arange(10) + 2), np.full(10, 0.1)])


def retrieved_weights(ranks: NDArray[np.int32], n: int) -> Floats:
    """The sum over runs of 1 / log2(rank + 1) down to rank 10, and of 0.1 to rank 20; shape (n,).

    Rounded, as the order of the runs must not decide between passages.

    Args:
        ranks: shape (runs, depth): the place of the passage at each rank; -1 for none.
        n: how many passages there are.
    """
    at_rank = ranks[:, : len(WEIGHTS)]
    is_retrieved = at_rank >= 0
    # numpy.add.at reads beyond weights that are to be repeated for each run (numpy 2.4.6).
    adds = np.broadcast_to(WEIGHTS[: at_rank.shape[1]], at_rank.shape)[is_retrieved]
    return np.round(np.bincount(at_rank[is_retrieved], adds, minlength=n), 9)
