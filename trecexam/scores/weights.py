"""How much each item of a query counts in Cover, by what assessors said of its importance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Name -> what a vital item weighs, and any other. An item without an importance is like an okay one, as it
#: is for nuggetizer, which calls nuggets okay that its model could not tell.
WEIGHTS = {"equal": (1.0, 1.0), "vital": (1.0, 0.0), "importance": (1.0, 0.5)}
EQUAL = "equal"


def item_weights(name: str, importances: Sequence[str]) -> NDArray[np.float64]:
    """The weight of each item, 0..1.

    Args:
        name: "equal": all 1. "vital": vital items 1, others 0. "importance": vital items 1, others 0.5, as in
            the weighted score of Pradeep et al., "Initial Nugget Evaluation Results for the TREC 2024 RAG
            Track with the AutoNuggetizer Framework", arXiv:2411.09607.
        importances: "vital", "okay" or "" of each item.

    Raises:
        KeyError: an unknown name.
    """
    vital, other = WEIGHTS[name]
    return np.array([vital if importance == "vital" else other for importance in importances], np.float64)
