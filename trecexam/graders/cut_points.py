"""The map from a cosine to a rating 0..5, and to the probabilities of these ratings.

The cut points are found by equipercentile linking (Kolen & Brennan, Test Equating, ch. 2) of each judged
passage's best cosine over its query's items with its human judgment: a share s of the passages is judged
at least j, so the cosine that a share s of them reach stands for j. On the 0..3 scale of TREC Deep Learning,
judgment 1 (related) is linked to rating 2, 2 (highly relevant) to 4, and 3 (perfectly relevant) to 5; the
cuts for 3 and for 1 lie halfway between and as far below. Only shares are matched, no correlation is
optimised. `fit_cut_points.py` beside this file does it for any track with official judgments.

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
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
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
    """How many cut points the cosine reaches: 0..5, monotone in the cosine."""
    return bisect_right(cut_points, cosine)


def probabilities(cosines: NDArray[np.float64], cuts: SoftCuts = SOFT_CUTS) -> NDArray[np.float64]:
    """The probabilities of the ratings 0..5, shape (..., 6); NaN where the cosine is."""
    import numpy as np

    inner = _reached(cosines, np.array(cuts.points), cuts.width)
    edges = np.where(np.isnan(cosines), np.nan, 1.0)[..., None]
    at_least = np.concatenate([edges, inner, 0 * edges], axis=-1)
    shares: NDArray[np.float64] = at_least[..., :-1] - at_least[..., 1:]
    return shares


def soft_link(cosines: Sequence[NDArray[np.float64]], judgments: Sequence[int]) -> SoftCuts:
    """The points and the width of most likelihood, two digits each; deterministic.

    Args:
        cosines: of each judged passage with its query's items.
        judgments: its human judgment on the 0..3 scale.

    Raises:
        ValueError: a judgment of 1, 2 or 3 never occurs.
    """
    import numpy as np
    from scipy.optimize import minimize

    padded = np.full((len(cosines), max(map(len, cosines), default=0)), -np.inf)
    for row, of_passage in enumerate(cosines):
        padded[row, : len(of_passage)] = of_passage
    labels = np.asarray(judgments)
    start = link(padded.max(axis=1, initial=-1.0).tolist(), judgments)
    rows = np.arange(len(labels))

    def surprise(theta: NDArray[np.float64]) -> float:
        points = np.cumsum([theta[0], *np.exp(theta[1:3])])
        reached = 1 - (1 - _reached(padded, points, float(np.exp(theta[3])))).prod(axis=1)
        at_least = np.column_stack([np.ones(len(rows)), reached, np.zeros(len(rows))])
        likely = at_least[rows, labels] - at_least[rows, labels + 1]
        return float(-np.log(np.maximum(likely, 1e-300)).mean())

    two, four, five = start[1], start[3], start[4]
    first = np.array([two, *np.log([max(four - two, 0.01), max(five - four, 0.01)]), np.log(0.05)])
    theta = minimize(surprise, first, method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-9}).x
    two, four, five = np.cumsum([theta[0], *np.exp(theta[1:3])]).tolist()
    points = (two - (four - two) / 2, two, (two + four) / 2, four, five)
    return SoftCuts(tuple(round(point, 2) for point in points), round(float(np.exp(theta[3])), 2))


def _reached(cosines: NDArray[np.float64], points: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    from scipy.special import expit

    reached: NDArray[np.float64] = expit((cosines[..., None] - points) / width)
    return reached


def link(best_cosines: Sequence[float], judgments: Sequence[int]) -> tuple[float, ...]:
    """Cut points for the ratings 1..5 from judged passages, two digits each.

    Args:
        best_cosines: each judged passage's highest cosine over its query's items.
        judgments: its human judgment on the 0..3 scale.

    Raises:
        ValueError: a judgment of 1, 2 or 3 never occurs.
    """
    import numpy as np

    labels = np.asarray(judgments)
    reached = []
    for judgment in (1, 2, 3):
        if not (labels == judgment).any():
            raise ValueError(f"no passage is judged {judgment}; the link needs judgments 0..3")
        reached.append(float(np.quantile(best_cosines, 1 - (labels >= judgment).mean())))
    two, four, five = reached
    three = (two + four) / 2
    return tuple(round(cut, 2) for cut in (two - (three - two), two, three, four, five))
