"""From gains to labels: a cut point per step of the scale, with the best agreement with judgments."""

from __future__ import annotations

import numpy as np

from trecexam.extensions.learn.arithmetic.passages import Floats


def fit_cuts(gains: Floats, labels: Floats, scale: Floats) -> Floats:
    """The lowest gain of each step of the scale; increasing.

    Each is the middle between two gains where Cohen's kappa of "gain at least the cut" with "label at least
    the step" is greatest; of several the lowest. Where no cut is better than chance, it is infinite: nothing
    gets that label.

    Args:
        gains: shape (n,); of regressions and neighbours that have not seen the passage.
        labels: the judgments of the same passages.
        scale: the labels, increasing.
    """
    order = np.argsort(gains, kind="stable")
    ordered = gains[order]
    n = len(ordered)
    # A cut before place i calls i passages lower; those of equal gains go together.
    positions = np.flatnonzero(np.diff(ordered) > 0) + 1
    cuts = []
    for step in scale[1:]:
        high = labels[order] >= step
        above = n - positions
        both = high.sum() - np.concatenate([[0], np.cumsum(high)])[positions]
        agreed = (both + (positions - (high.sum() - both))) / n
        chance = (above * high.sum() + positions * (n - high.sum())) / n**2
        kappa = (agreed - chance) / np.where(chance < 1, 1 - chance, 1)
        if not len(positions) or kappa.max() <= 0:
            cuts.append(np.inf)
            continue
        at = positions[int(np.argmax(kappa))]
        cuts.append((ordered[at - 1] + ordered[at]) / 2)
    return np.maximum.accumulate(np.array(cuts))


def labels_of(gains: Floats, cuts: Floats, scale: Floats) -> Floats:
    """The label of each gain: the highest whose cut it reaches."""
    return np.asarray(scale[(gains[:, None] >= cuts).sum(axis=1)])
