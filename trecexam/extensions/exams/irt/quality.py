"""How well a model fits: residuals of the whole matrix, and of each item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trecexam.extensions.exams.irt.model import Floats, cells


class ItemFit(NamedTuple):
    """Mean squares of each item's residuals, shape (n_items,) each; 1 is as the model expects.

    Below 1 responses are more regular than the model has it, above 1 less. Wright & Masters, "Rating Scale
    Analysis", 1982, chapter 5:

        outfit = mean of (r - p)^2 / (p (1 - p))      infit = sum of (r - p)^2 / sum of p (1 - p)

    over the examinees that responded. Surprises far from an item's difficulty weigh most in outfit.
    """

    infit: Floats
    outfit: Floats


class Errors(NamedTuple):
    """Root mean square errors of predicting responses, 0..1.

    Attributes:
        model: of the model's probabilities, over all responses.
        baseline: of each examinee's share of right responses in their place.
        model_items, baseline_items: the same for each item, and then the mean over items, as released with
            the exam paper.
    """

    model: float
    baseline: float
    model_items: float
    baseline_items: float


def item_fit(responses: Floats, theta: Floats, a: Floats, b: Floats, c: Floats) -> ItemFit:
    """Infit and outfit of each item."""
    expected = cells(theta, a, b, c)
    given = ~np.isnan(responses)
    variance = expected.p * expected.q
    squares = np.where(given, (responses - expected.p) ** 2, 0.0)
    # An item that the model is sure of has no variance to speak of.
    least = np.maximum(variance, np.finfo(float).tiny)
    outfit = (squares / least).sum(axis=0) / given.sum(axis=0)
    return ItemFit(squares.sum(axis=0) / np.where(given, least, 0.0).sum(axis=0), outfit)


def errors(responses: Floats, theta: Floats, a: Floats, b: Floats, c: Floats) -> Errors:
    """How far the model's probabilities are from the responses, and how far the examinees' means are."""
    squares = (responses - cells(theta, a, b, c).p) ** 2
    plain = (responses - np.nanmean(responses, axis=1, keepdims=True)) ** 2
    whole = [float(np.sqrt(np.nanmean(squared))) for squared in (squares, plain)]
    items = [float(np.sqrt(np.nanmean(squared, axis=0)).mean()) for squared in (squares, plain)]
    return Errors(*whole, *items)
