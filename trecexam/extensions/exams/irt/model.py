"""The logistic models: 1PL, 2PL and 3PL, of which each is a special case of the next.

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


class Cells(NamedTuple):
    """Every examinee with every item; each of shape (n_examinees, n_items).

    Attributes:
        s, not_s: the logistic part 1 / (1 + exp(-z)) with z = a (theta - b), and 1 - s with all its digits.
        p, q: the probability of a right and of a wrong response, with all their digits.
    """

    s: Floats
    not_s: Floats
    p: Floats
    q: Floats


def probability(theta: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike = 0.0) -> Floats:
    """The probability of a right response, of shape (n_examinees, n_items); 0..1, at any argument.

    Args:
        theta: abilities, shape (n_examinees,) or a number.
        a, b, c: the items' parameters, shape (n_items,) or a number each.
    """
    arrays = [np.atleast_1d(np.asarray(value, np.float64)) for value in (theta, a, b, c)]
    return cells(*arrays).p


def logits(theta: Floats, a: Floats, b: Floats) -> Floats:
    """z = a (theta - b) of every examinee with every item."""
    z = np.subtract.outer(theta, b)
    z *= a
    return z


def cells(theta: Floats, a: Floats, b: Floats, c: Floats) -> Cells:
    """`Cells` of every examinee with every item."""
    # Who asks a track anything else does not wait for it.
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
