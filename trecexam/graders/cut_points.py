"""The map from a cosine to a rating 0..5, and to the probabilities of these ratings.

The cut points are found by equipercentile linking (Kolen & Brennan, Test Equating, ch. 2) of each judged
passage's best cosine over its query's items with its human judgment: a share s of the passages is judged
at least j, so the cosine that a share s of them reach means j. On the 0..3 scale of TREC Deep Learning,
judgment 1 (related) is linked to rating 2, 2 (highly relevant) to 4, and 3 (perfectly relevant) to 5; the
cuts for 3 and for 1 lie halfway between and as far below. Only shares are matched, no correlation is
optimised. `tests/benchmarks/cut_points.py` does it for any track with official judgments.

The probabilities are those of a logistic around each of five other points, its `SoftCuts`:

    P(rating >= r | cosine) = 1 / (1 + exp((point_r - cosine) / width))

Points and width are what makes the judgments most likely where a passage is judged at least as its best
rating says and items are independent (noisy or), P(judgment >= j) = 1 - prod over items of (1 - P(rating >=
r_j)), with judgments linked to ratings as above. So expected labels and ECover, which take items and
passages as independent, are calibrated; the probability of a single cell, one of some ten, is low.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class SoftCuts(NamedTuple):
    """Cosines at which the ratings 1, 2, .. 5 or better are as probable as not; the logistic's width."""

    points: tuple[float, ...]
    width: float


#: Fitted on 21 queries, 4,339 judged passages of TREC DL 2019 with all-MiniLM-L6-v2; two digits.
CUT_POINTS = (0.52, 0.56, 0.59, 0.63, 0.74)
#: Fitted on the same judgments with the same model.
SOFT_CUTS = SoftCuts((0.84, 0.90, 0.96, 1.03, 1.31), 0.16)


def rating(cosine: float, cut_points: Sequence[float] = CUT_POINTS) -> int:
    """Return how many cut points the cosine reaches: 0..5."""
    return bisect_right(cut_points, cosine)


def probabilities(cosines: NDArray[np.float64], cuts: SoftCuts = SOFT_CUTS) -> NDArray[np.float64]:
    """Return the probabilities of the ratings 0..5, shape (..., 6); NaN where the cosine is."""
    inner = reached(cosines, np.array(cuts.points), cuts.width)
    edges = np.where(np.isnan(cosines), np.nan, 1.0)[..., None]
    at_least = np.concatenate([edges, inner, 0 * edges], axis=-1)
    shares: NDArray[np.float64] = at_least[..., :-1] - at_least[..., 1:]
    return shares


def reached(cosines: NDArray[np.float64], points: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Return P(rating >= r | cosine) for each point, shape (..., n_points)."""
    from scipy.special import expit

    values: NDArray[np.float64] = expit((cosines[..., None] - points) / width)
    return values
