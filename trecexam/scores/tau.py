"""Rank correlation in numpy: tau_AP, and Kendall's tau-b of many pairs of leaderboards at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: How many (pair of runs, leaderboard) cells are worked on at once: some 10 MB.
_CELLS = 1 << 20


def tau_ap(truth: ArrayLike, estimate: ArrayLike) -> float:
    """AP rank correlation, in which mistakes at the top of the estimated ranking weigh more; -1..1.

    Without ties it is the coefficient of Yilmaz, Aslam & Robertson, "A New Rank Correlation Coefficient
    for Information Retrieval", SIGIR 2008:

        tau_AP = 2 / (n-1) * sum over ranks i = 2..n of the estimate of C(i) / (i-1)  -  1

    with C(i) the number of runs above rank i that the truth too has above the run at rank i. Ties in the
    estimate: the expectation over all orders of the tied runs (tau_AP,a of Urbano & Marrero, "The
    Treatment of Ties in AP Correlation", ICTIR 2017). Ties in the truth: half a concordance.

    Args:
        truth, estimate: scores of the same n runs, higher is better; only equal values are ties.

    Returns:
        NaN for fewer than two runs.

    Raises:
        ValueError: the shapes are not (n,) and (n,).
    """
    t, e = np.asarray(truth, np.float64), np.asarray(estimate, np.float64)
    if t.ndim != 1 or t.shape != e.shape:
        raise ValueError(f"scores of shape {t.shape} and {e.shape} don't fit")
    n = len(t)
    if n < 2:
        return float("nan")
    t = t[np.argsort(-e, kind="stable")]
    # right[x, y]: how right it is to have y above x.
    right = (t[None, :] > t[:, None]) + 0.5 * (t[None, :] == t[:, None])
    total = 0.0
    start = 0
    for size in np.unique(-e, return_counts=True)[1].tolist():
        # Any run of the tied group is at each of its ranks with probability 1/size. Of those above it
        # there, `start` are surely above, and the others are of the group, where one is right of each two.
        surely = float(right[start : start + size, :start].sum()) / size
        above = np.arange(max(start, 1), start + size)
        total += float(((surely + 0.5 * (above - start)) / above).sum())
        start += size
    return 2 * total / (n - 1) - 1


def tau_b_columns(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kendall's tau-b of a's and b's columns, column by column.

    Args:
        a, b: scores of shape (n_runs, n_columns); one of them may have a single column, which then goes
            with every column of the other.

    Returns:
        Shape (n_columns,); NaN where all runs are tied in one of the two.
    """
    n_columns = max(a.shape[1], b.shape[1])
    first, second = np.triu_indices(a.shape[0], k=1)
    taus = np.full(n_columns, np.nan)
    step = max(1, _CELLS // max(1, len(first)))
    for start in range(0, n_columns, step):
        part = slice(start, start + step)
        sa, sb = (_signs(side[:, part] if side.shape[1] > 1 else side, first, second) for side in (a, b))
        agreement = (sa * sb).sum(axis=0, dtype=np.int64)
        untied = [np.count_nonzero(signs, axis=0).astype(np.float64) for signs in (sa, sb)]
        scale = np.sqrt(untied[0] * untied[1])
        np.divide(agreement, scale, out=taus[part], where=scale > 0)
    return taus


def _signs(
    scores: NDArray[np.float64], first: NDArray[np.intp], second: NDArray[np.intp]
) -> NDArray[np.int8]:
    """For each pair of runs, 1, 0 or -1 as the first is better, tied or worse."""
    one, other = scores[first], scores[second]
    return (one > other).astype(np.int8) - (one < other).astype(np.int8)
