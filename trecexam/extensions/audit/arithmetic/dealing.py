"""Whether a run has more unjudged passages than chance would give it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.audit.records import Floats, Labels


def dealt_p(rows: Labels, unjudged: NDArray[np.bool_]) -> Floats:
    """p of so many unjudged passages or more, were they dealt among all passages of their query.

    Of each query the passages at the first ranks of all runs are one urn. A run draws as many as it has; the
    number of unjudged ones is hypergeometric, and the sum over queries has the convolution's distribution.

    Args:
        rows: the passages, -1 for none; shape (runs, queries, k).
        unjudged: which of them have no label.

    Returns:
        Of each run; 1 where nothing is unjudged.
    """
    from scipy.stats import hypergeom

    n_runs = len(rows)
    queries = np.flatnonzero(unjudged.any(axis=(0, 2)))
    total = np.zeros(n_runs, np.intp)
    laws: list[NDArray[np.float64]] = [np.ones(1)] * n_runs
    for query in queries.tolist():
        there = rows[:, query] >= 0
        size = len(np.unique(rows[:, query][there]))
        holes = len(np.unique(rows[:, query][unjudged[:, query]]))
        drawn, own = there.sum(axis=1), unjudged[:, query].sum(axis=1)
        total += own
        law = {n: hypergeom.pmf(np.arange(n + 1), size, holes, n) for n in np.unique(drawn).tolist()}
        for run, n in enumerate(drawn.tolist()):
            laws[run] = np.convolve(laws[run], law[n])
    return np.array([min(1.0, float(law[n:].sum())) for law, n in zip(laws, total.tolist(), strict=True)])
