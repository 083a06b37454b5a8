"""nDCG@k with fractional gains, on indices in a pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.learn.arithmetic.passages import Floats


def ndcg(ranks: NDArray[np.int32], gains: Floats, k: int, elsewhere: Floats | None = None) -> Floats:
    """nDCG@k of each run for a query as in trec_eval: sum of gain / log2(rank + 1), over the best sum.

    Args:
        ranks: shape (runs, depth): the place among `gains` of the passage at each rank; -1 for none.
        gains: of the pooled passages; a negative one counts 0, and one that is NaN leaves its passage out of
            all rankings ("condensed list", Sakai, SIGIR 2007).
        k: ranks that count.
        elsewhere: gains of passages that no run has, which count for the best sum.

    Returns:
        Shape (runs,); 0 where nothing is gained.
    """
    discounts = 1 / np.log2(np.arange(k) + 2)
    has_gain = ~np.isnan(gains)
    at_rank = np.append(np.where(has_gain, np.maximum(gains, 0), 0), 0)[ranks]
    in_list = np.append(has_gain, False)[ranks]
    # Where a rank is left out, those below it move up.
    position = np.cumsum(in_list, axis=1) - 1
    counts = in_list & (position < k)
    sums = (at_rank * np.where(counts, discounts[np.where(counts, position, 0)], 0)).sum(axis=1)
    every = np.concatenate([gains[has_gain], np.empty(0) if elsewhere is None else elsewhere])
    best = np.sort(np.maximum(every, 0))[::-1][:k]
    ideal = float((best * discounts[: len(best)]).sum())
    return np.asarray(sums / ideal if ideal else np.zeros(len(ranks)))
