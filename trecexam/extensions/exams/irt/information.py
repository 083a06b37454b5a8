"""Fisher information about ability: where an item, or a whole exam, tells examinees apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from trecexam.extensions.exams.irt.model import Floats, cells

#: Where curves are drawn: beyond every default bound.
GRID = np.round(np.linspace(-4.0, 4.0, 161), 2)


def item_information(
    theta: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike = 0.0, *, compat: bool = False
) -> Floats:
    """Each item's information at each ability, shape (n_thetas, n_items).

        I(theta) = a^2 (q / p) ((p - c) / (1 - c))^2,    q = 1 - p

    Lord, "Applications of Item Response Theory to Practical Testing Problems", 1980, equation 4-43. Where
    c is 0, it is a^2 p q.

    Args:
        theta: abilities, shape (n_thetas,).
        a, b, c: shape (n_items,) each, or numbers.
        compat: a^2 p q at any c, as in the code released with the exam paper, which is too large where items
            can be guessed.
    """
    theta, a, b, c = (np.atleast_1d(np.asarray(value, np.float64)) for value in (theta, a, b, c))
    at = cells(theta, a, b, c)
    if compat or not c.any():
        return np.asarray(a**2 * at.p * at.q)
    # (p - c) / (1 - c) is s, and s q / p is at most 1 where c is above 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(c > 0, at.s / at.p, 1.0)
    return np.asarray(a**2 * at.q * share * at.s)


def exam_information(
    theta: ArrayLike, a: ArrayLike, b: ArrayLike, c: ArrayLike = 0.0, *, compat: bool = False
) -> Floats:
    """The information of all items together at each ability, shape (n_thetas,).

    1 over its root is the standard error of an ability at known items.
    """
    information: Floats = item_information(theta, a, b, c, compat=compat).sum(axis=1)
    return information
