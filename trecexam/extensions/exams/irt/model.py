"""Logistic models: probabilities of responses, information, and prediction errors.

The 1PL, 2PL and 3PL, each a special case of the next:

    p = c + (1 - c) / (1 + exp(-a (theta - b)))

with an item's discrimination a, difficulty b and guessing c, and an examinee's ability theta (Birnbaum, in
Lord & Novick, "Statistical Theories of Mental Test Scores", 1968, chapter 17). In the 2PL c is 0, in the 1PL
(Rasch) a is 1, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
#: Abilities at which curves are drawn: beyond every default bound.
GRID = np.round(np.linspace(-4.0, 4.0, 161), 2)


class Cells(NamedTuple):
    """Arrays over examinees and items, of shape (n_examinees, n_items) each.

    Attributes:
        s, not_s: the logistic part 1 / (1 + exp(-z)) with z = a (theta - b), and 1 - s with all its digits.
        p, q: the probability of a right and of a wrong response, with all their digits.
    """

    s: Floats
    not_s: Floats
    p: Floats
    q: Floats


def probability(theta: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike = 0.0) -> Floats:
    """Return the probability of a right response, of shape (n_examinees, n_items); 0..1, at any argument.

    Args:
        theta: abilities, shape (n_examinees,) or a number.
        a, b, c: the items' parameters, shape (n_items,) or a number each.
    """
    arrays = [np.atleast_1d(np.asarray(value, np.float64)) for value in (theta, a, b, c)]
    return cells(*arrays).p


def logits(theta: Floats, a: Floats, b: Floats) -> Floats:
    """Return z = a (theta - b) of every examinee with every item."""
    z = np.subtract.outer(theta, b)
    z *= a
    return z


def cells(theta: Floats, a: Floats, b: Floats, c: Floats) -> Cells:
    """Return `Cells` of every examinee with every item."""
    # Imported late, so that other calls on a track do not wait for scipy.
    from scipy.special import expit

    z = logits(theta, a, b)
    s = expit(z)
    np.negative(z, out=z)
    not_s = expit(z, out=z)
    if not c.any():
        return Cells(s, not_s, s, not_s)
    p = s * (1 - c)
    p += c
    return Cells(s, not_s, p, not_s * (1 - c))


def item_information(
    theta: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike = 0.0, *, compat: bool = False
) -> Floats:
    """Return each item's information at each ability, shape (n_thetas, n_items).

        I(theta) = a^2 (q / p) ((p - c) / (1 - c))^2,    q = 1 - p

    Lord, "Applications of Item Response Theory to Practical Testing Problems", 1980, equation 4-43. Where
    c is 0, it is a^2 p q.

    Args:
        theta: abilities, shape (n_thetas,).
        a, b, c: shape (n_items,) each, or numbers.
        compat: use a^2 p q at any c, as in the exam paper's code, which is too large with guessing.
    """
    theta, a, b, c = (np.atleast_1d(np.asarray(value, np.float64)) for value in (theta, a, b, c))
    at = cells(theta, a, b, c)
    if compat or not c.any():
        return np.asarray(a**2 * at.p * at.q)
    # (p - c) / (1 - c) is s, and s q / p is at most 1 if c is above 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(c > 0, at.s / at.p, 1.0)
    return np.asarray(a**2 * at.q * share * at.s)


def exam_information(
    theta: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike = 0.0, *, compat: bool = False
) -> Floats:
    """Return the information of all items together at each ability, shape (n_thetas,).

    1 over its root is the standard error of an ability at known items.
    """
    information: Floats = item_information(theta, a, b, c, compat=compat).sum(axis=1)
    return information


class Errors(NamedTuple):
    """Root mean square errors of predicting responses, 0..1.

    Attributes:
        model: of the model's probabilities, over all responses.
        baseline: of each examinee's share of right responses as the prediction.
        model_items, baseline_items: the same for each item, and then the mean over items, as released with
            the exam paper.
    """

    model: float
    baseline: float
    model_items: float
    baseline_items: float


def errors(responses: Floats, theta: Floats, a: Floats, b: Floats, c: Floats) -> Errors:
    """Return prediction errors of the model's probabilities and of the examinees' means."""
    squares = (responses - cells(theta, a, b, c).p) ** 2
    plain = (responses - np.nanmean(responses, axis=1, keepdims=True)) ** 2
    whole = [float(np.sqrt(np.nanmean(squared))) for squared in (squares, plain)]
    items = [float(np.sqrt(np.nanmean(squared, axis=0)).mean()) for squared in (squares, plain)]
    return Errors(*whole, *items)
