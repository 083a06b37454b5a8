"""The map from a cosine to a rating 0..5.

The cut points are found by equipercentile linking (Kolen & Brennan, Test Equating, ch. 2) of each judged
passage's best cosine over its query's items with its human judgment: a share s of the passages is judged
at least j, so the cosine that a share s of them reach stands for j. On the 0..3 scale of TREC Deep Learning,
judgment 1 (related) is linked to rating 2, 2 (highly relevant) to 4, and 3 (perfectly relevant) to 5; the
cuts for 3 and for 1 lie halfway between and as far below. Only shares are matched, no correlation is
optimised. `fit_cut_points.py` beside this file does it for any track with official judgments.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

#: Fitted on 21 queries, 4,339 judged passages of TREC DL 2019 with all-MiniLM-L6-v2; two digits.
CUT_POINTS = (0.52, 0.56, 0.59, 0.63, 0.74)


def rating(cosine: float, cut_points: Sequence[float] = CUT_POINTS) -> int:
    """How many cut points the cosine reaches: 0..5, monotone in the cosine."""
    return bisect_right(cut_points, cosine)


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
