"""Weights of items in Cover, from importances or from numbers in the bank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Name -> what a vital item weighs, and any other. An item without an importance is like an okay one, as it
#: is for nuggetizer, which calls nuggets okay that its model could not tell.
BY_IMPORTANCE = {"equal": (1.0, 1.0), "vital": (1.0, 0.0), "importance": (1.0, 0.5)}
EQUAL = "equal"
#: The weights that the bank gives its items.
ITEM = "item"
WEIGHTS = (*BY_IMPORTANCE, ITEM)
#: Of judgments without any, the measure in braces.
NO_WEIGHTS = (
    "{} needs weights of items, and these judgments carry none: give ratings of a bank whose items have them"
)


def item_weights(
    name: str, importances: Sequence[str], weights: Sequence[float] | None = None
) -> NDArray[np.float64]:
    """The weight of each item, 0..1; any number for "item".

    Args:
        name: "equal": all 1. "vital": vital items 1, others 0. "importance": vital items 1, others 0.5, as in
            the weighted score of Pradeep et al., "Initial Nugget Evaluation Results for the TREC 2024 RAG
            Track with the AutoNuggetizer Framework", arXiv:2411.09607. "item": `weights`.
        importances: "vital", "okay" or "" of each item.
        weights: of each item; None where the bank gives none of this query: all 1.

    Raises:
        KeyError: an unknown name.
    """
    if name == ITEM:
        return np.ones(len(importances)) if weights is None else np.array(weights, np.float64)
    vital, other = BY_IMPORTANCE[name]
    return np.array([vital if importance == "vital" else other for importance in importances], np.float64)
