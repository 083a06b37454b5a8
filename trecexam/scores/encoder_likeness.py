"""Detects runs that rank passages like a sentence encoder, much more than a track's other runs.

A grader that is this encoder rates highly what such a run ranks first, whether it is relevant or not. Good
runs agree with an encoder, too, and so do runs that have few good passages before many bad ones. So only
passages of nearly the same cosine are compared, which relevance hardly puts in an order; and what counts is
how far a run is above the median run, in units of the spread.

The spread is the median absolute deviation, which up to half of the runs cannot move (Rousseeuw & Croux,
"Alternatives to the Median Absolute Deviation", JASA 88, 1993), times 1.4826: for normal values that is the
standard deviation.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.paired_tests import holm

Floats = NDArray[np.float64]

#: Fewer runs have no reliable median absolute deviation.
MIN_RUNS = 8
#: Of the test over all runs, adjusted by Holm.
ALPHA = 0.001
#: Ranks that are compared, at most.
MAX_RANKS = 20
#: Passages that a run must have in all of its rankings: the agreement of fewer is chance.
MIN_PASSAGES = 2 * MAX_RANKS
#: Passages that are so many apart in the encoder's order of a ranking, at most, are compared.
_NEAR = 3
_NORMAL = 1.4826


def agreement(cosines: Floats) -> Floats:
    """Return the agreement of each ranking with the encoder on passages of nearly equal cosine, -1 to 1.

    As Kendall's tau, the share of pairs in the same order less that in the other one, of the pairs that are
    next to each other, or second or third next, when the ranking's passages are sorted by cosine. Ties are in
    no order. NaN where a ranking has fewer than two passages with a cosine.

    Args:
        cosines: of shape (n_runs, n_ranks), of the passage at each rank; NaN if missing.
    """
    ranks = np.argsort(-cosines, axis=1, kind="stable")
    by_cosine = np.take_along_axis(cosines, ranks, axis=1)
    total, pairs = np.zeros(len(cosines)), np.zeros(len(cosines), np.intp)
    for apart in range(1, _NEAR + 1):
        lower = by_cosine[:, :-apart] - by_cosine[:, apart:]
        total += (np.sign(ranks[:, apart:] - ranks[:, :-apart]) * (lower > 0)).sum(axis=1)
        pairs += np.count_nonzero(~np.isnan(lower), axis=1)
    mean: Floats = np.divide(total, pairs, out=np.full(len(cosines), np.nan), where=pairs > 0)
    return mean


def agreements_of_runs(cosines: Iterable[Floats]) -> Floats:
    """Return the agreement of each run and query, shape (n_runs, n_queries).

    A run with fewer passages than `MIN_PASSAGES`, or than half of the median run's, has NaN: chance moves its
    mean further than that of the other runs.

    Args:
        cosines: of each query, see `agreement`; the first `MAX_RANKS` ranks are compared.
    """
    of_queries = [each[:, :MAX_RANKS] for each in cosines]
    if not of_queries:
        return np.empty((0, 0))
    n_passages = np.sum([np.count_nonzero(~np.isnan(each), axis=1) for each in of_queries], axis=0)
    agreements = np.stack([agreement(each) for each in of_queries], axis=1)
    agreements[n_passages < max(MIN_PASSAGES, np.median(n_passages) / 2)] = np.nan
    return agreements


def runs_like_encoder(agreements: Floats) -> list[int]:
    """Return the rows of the runs whose mean agreement is far above that of the median run, in order.

    The distance in units of the spread has a p-value: Student's t with n_runs - 1 degrees of freedom,
    one-sided, adjusted by Holm. A run is listed where that is below `ALPHA`.

    Args:
        agreements: of shape (n_runs, n_queries), see `agreements_of_runs`; NaN where a run has no ranking.
    """
    from scipy.special import stdtr

    ranked = np.count_nonzero(~np.isnan(agreements), axis=1)
    rows = ranked.nonzero()[0]
    if len(rows) < MIN_RUNS:
        return []
    means = np.nansum(agreements[rows], axis=1) / ranked[rows]
    above = means - np.median(means)
    deviation = _NORMAL * float(np.median(np.abs(above)))
    if not deviation > 0:
        return []
    p = stdtr(len(rows) - 1, -above / deviation)
    listed: list[int] = rows[holm(p) < ALPHA].tolist()
    return listed
