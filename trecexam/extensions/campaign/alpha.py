"""Krippendorff's alpha for ordinal ratings, with an interval that resamples whole topics.

The library `krippendorff` has an incompatible licence (GPL) and treats units as independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trecexam.scores.kappa import MIN_QUERIES, Kappa

Floats = NDArray[np.float64]
DRAWS = 2_000


def alpha(topics: Sequence[Sequence[Sequence[int]]], n_values: int) -> Kappa:
    """Return Krippendorff's alpha for ordinal data of any number of raters, with missing ratings.

    alpha = 1 - Do / De, observed over expected disagreement, with the ordinal difference of Krippendorff,
    "Computing Krippendorff's Alpha-Reliability" (2011), section C; cells with one rating do not count. The
    interval is the 2.5% and 97.5% percentile of `DRAWS` bootstrap samples of topics; samples without a value
    are left out. There is no interval for fewer than `MIN_QUERIES` topics, as cells depend on their topic.

    Args:
        topics: for each topic and each of its cells, the ratings 0 .. n_values - 1, in any order.
    """
    of_topic = [
        [_coincidences(ratings, n_values) for ratings in cells if len(ratings) > 1] for cells in topics
    ]
    of_topic = [cells for cells in of_topic if cells]
    if not of_topic:
        return Kappa()
    tables = np.array([np.sum(cells, axis=0) for cells in of_topic])
    value = float(_alpha(tables.sum(axis=0)[None])[0])
    n = len(tables)
    if math.isnan(value) or n < MIN_QUERIES:
        return Kappa(value)
    weights = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), DRAWS).astype(np.float64)
    values = _alpha(np.tensordot(weights, tables, 1))
    low, high = np.percentile(values[~np.isnan(values)], [2.5, 97.5])
    return Kappa(value, float(low), float(high))


def _coincidences(ratings: Sequence[int], n_values: int) -> Floats:
    """Return the coincidence matrix of rating pairs per cell, in both orders; shape (values, values)."""
    counts = np.bincount(np.asarray(ratings, np.int64), minlength=n_values).astype(np.float64)
    pairs: Floats = (np.outer(counts, counts) - np.diag(counts)) / (counts.sum() - 1)
    return pairs


def _alpha(tables: Floats) -> Floats:
    """Return alpha of each coincidence matrix, shape (n, values, values); NaN if undefined."""
    totals = tables.sum(axis=2)
    n = totals.sum(axis=1)
    # The ordinal difference of c and k: how many ratings lie between them, the two halved.
    upto = np.cumsum(totals, axis=1) - totals / 2
    differences = (upto[:, :, None] - upto[:, None, :]) ** 2
    observed = (tables * differences).sum(axis=(1, 2))
    expected = (totals[:, :, None] * totals[:, None, :] * differences).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        value: Floats = np.where(expected > 0, 1 - (n - 1) * observed / expected, np.nan)
    return value
