"""Cohen's kappa of two raters, with an interval that respects clusters of passages."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
#: With fewer queries there is no interval: it would be too wide to say anything, and still miss too often.
MIN_QUERIES = 5


@dataclass(frozen=True)
class Kappa:
    """Agreement beyond chance, -1..1, and a 95% interval.

    Attributes:
        value: NaN where there is nothing to rate, or both raters give all passages the same one label.
        low, high: NaN where there is no interval: fewer than `MIN_QUERIES` queries, or a rater who gives
            all passages one label (kappa is then 0 whatever the other says).
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


def kappa(counts: Counts) -> Kappa:
    """Cohen's kappa of two raters who use the same k labels.

    kappa = (po - pe) / (1 - pe), with po the share of passages that both give the same label, and pe the
    share expected of raters with these marginals who don't look (Cohen, "A coefficient of agreement for
    nominal scales", Educational and Psychological Measurement 20, 1960).

    The interval is kappa -+ t * SE, cut to -1..1. SE is the large-sample standard error (Fleiss, Cohen &
    Everitt, "Large sample standard errors of kappa and weighted kappa", Psychological Bulletin 72, 1969:
    the delta method) with the deviations of a query's passages summed before they are squared, because
    passages of one query are not independent (Yang & Zhou, "Kappa statistic for clustered matched-pair
    data", Statistics in Medicine 33, 2014), and their sum times Q / (Q - 1) for Q queries. But for this
    factor it is the standard error of 1969 where each query has one passage.

    t is the 97.5% quantile of Student's t with as many degrees of freedom as queries count, at most Q - 1:
    with u a query's summed deviations, (sum u^2)^2 / sum u^4, the effective number of clusters (Carter,
    Schnepel & Steigerwald, "Asymptotic Behavior of a t-Test Robust to Cluster Heterogeneity", Review of
    Economics and Statistics 99(4), 2017). Where few queries have most of the relevant passages, SE is known
    of those few alone.

    Args:
        counts: shape (n_queries, k, k): how many of a query's passages the first rater gives label i and
            the second label j. Queries without passages do not count.
    """
    counts = counts[counts.any(axis=(1, 2))]
    table = counts.sum(axis=0)
    n = int(table.sum())
    if n == 0:
        return Kappa()
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    if int(rows @ columns) == n * n:
        return Kappa()
    p, r, c = table / n, rows / n, columns / n
    po, pe = float(np.trace(p)), float(r @ c)
    value = (po - pe) / (1 - pe)
    n_queries = len(counts)
    if n_queries < MIN_QUERIES or rows.max() == n or columns.max() == n:
        return Kappa(value)
    from scipy.special import stdtrit

    # What a passage in cell (i, j) adds to n * kappa, to first order: d kappa / d p_ij.
    slope = (np.eye(len(p)) - po) / (1 - pe) - (1 - po) * (c[:, None] + r[None, :] - 2 * pe) / (1 - pe) ** 2
    of_query = (counts * slope).sum(axis=(1, 2))
    squares = of_query**2
    total = float(squares.sum())
    if total == 0:
        return Kappa(value, value, value)
    error = math.sqrt(n_queries / (n_queries - 1) * total) / n
    freedom = min(n_queries - 1, total**2 / float(squares @ squares))
    half_width = float(stdtrit(freedom, 0.975)) * error
    return Kappa(value, max(-1.0, value - half_width), min(1.0, value + half_width))


def weighted_kappa(table: Counts, power: int) -> float:
    """Weighted kappa of two raters who use the same k ordered labels, one step apart; -1..1.

    1 - observed / expected disagreement, where labels i and j disagree by |i - j| ** power: 1 is linear,
    2 quadratic weighting (Cohen, "Weighted kappa: nominal scale agreement provision for scaled
    disagreement or partial credit", Psychological Bulletin 70, 1968).

    Args:
        table: shape (k, k), counts.

    Returns:
        NaN where `kappa` is.
    """
    n = int(table.sum())
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    steps = np.abs(np.subtract.outer(np.arange(len(table)), np.arange(len(table)))) ** power
    expected = int((steps * np.outer(rows, columns)).sum())
    return 1 - n * int((steps * table).sum()) / expected if expected else math.nan
