"""The log-likelihood of a response matrix and its derivatives, all examinees and items at once.

With r the response, z = a (theta - b), s = 1 / (1 + exp(-z)) and q = 1 - p, a response's log-likelihood has,
after division by what cancels, the derivatives

    by z:  (r - p) s / p           by c:  (r - p) / (p (1 - c))

and those by a, b and theta follow from z. A response that is missing adds nothing to any sum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.exams.irt.model import Cells, Floats, cells, logits

#: Threshold below which a probability has lost digits, and its logarithm is computed differently.
_TINY = 1e-300


class Gradient(NamedTuple):
    """The derivatives by each item's a, b and c, shape (n_items,), and each theta, shape (n_examinees,)."""

    a: Floats
    b: Floats
    c: Floats
    theta: Floats


class Curvature(NamedTuple):
    """The observed information: negative second derivatives of the log-likelihood.

    Attributes:
        items: shape (n_items, 3, 3), by a, b and c of each item; 0 between different items.
        theta: shape (n_examinees,); 0 between different examinees.
        cross: shape (n_examinees, n_items, 3), by theta and then a, b and c; empty unless requested.
    """

    items: Floats
    theta: Floats
    cross: Floats


class Responses:
    """A response matrix, prepared for the likelihood.

    Attributes:
        right: True for the response 1; shape (n_examinees, n_items).
        given: True for a response; same shape.
    """

    def __init__(self, values: Floats) -> None:
        """Prepare a matrix of 0, 1 and NaN."""
        self.right: NDArray[np.bool_] = values == 1
        self.given: NDArray[np.bool_] = ~np.isnan(values)

    def kept(self, values: Floats) -> Floats:
        """Return the values, with 0 where there is no response; in place."""
        values *= self.given
        return values


def log_likelihood(responses: Responses, theta: Floats, a: Floats, b: Floats, c: Floats) -> float:
    """Return the log-likelihood of all responses; finite and at most 0."""
    return float(by_item(responses, theta, a, b, c).sum())


def by_item(responses: Responses, theta: Floats, a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the log-likelihood of the responses to each item, shape (n_items,)."""
    logs: Floats = _logs(responses, cells(theta, a, b, c), theta, a, b, c).sum(axis=0)
    return logs


def with_gradient(
    responses: Responses, theta: Floats, a: Floats, b: Floats, c: Floats
) -> tuple[float, Gradient]:
    """Return the log-likelihood and its gradient."""
    cell = cells(theta, a, b, c)
    total = float(_logs(responses, cell, theta, a, b, c).sum())
    by_z, by_c = _first(responses, cell, c)
    sums = by_z.sum(axis=0)
    return total, Gradient(theta @ by_z - b * sums, -a * sums, by_c.sum(axis=0), by_z @ a)


def curvature(
    responses: Responses, theta: Floats, a: Floats, b: Floats, c: Floats, *, cross: bool = True
) -> Curvature:
    """Return the observed information of every parameter; with `cross`, also of pairs."""
    cell = cells(theta, a, b, c)
    by_z, by_c = _first(responses, cell, c)
    slope = cell.s * cell.not_s
    # Second derivatives by z and by c; those of wrong responses do not depend on c.
    with np.errstate(divide="ignore", invalid="ignore"):
        at_right = np.where(c > 0, c / cell.p**2, 0.0)
        z_c = np.where(responses.right & (c > 0), -slope / cell.p**2, 0.0)
    z_z = responses.kept(slope * (at_right * responses.right - 1))
    z_c = responses.kept(z_c)
    c_c = -(by_c**2)
    d = np.subtract.outer(theta, b)
    items = np.empty((len(a), 3, 3))
    items[:, 0, 0] = (z_z * d * d).sum(axis=0)
    items[:, 0, 1] = items[:, 1, 0] = -a * (z_z * d).sum(axis=0) - by_z.sum(axis=0)
    items[:, 1, 1] = a * a * z_z.sum(axis=0)
    items[:, 0, 2] = items[:, 2, 0] = (z_c * d).sum(axis=0)
    items[:, 1, 2] = items[:, 2, 1] = -a * z_c.sum(axis=0)
    items[:, 2, 2] = c_c.sum(axis=0)
    both = np.stack((z_z * a * d + by_z, -z_z * a * a, z_c * a), axis=2) if cross else np.empty((0, 0, 3))
    return Curvature(-items, -(z_z @ (a * a)), -both)


def _logs(responses: Responses, cell: Cells, theta: Floats, a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the log-likelihood of each response."""
    chosen = np.where(responses.right, cell.p, cell.q)
    far = chosen < _TINY if chosen.min(initial=1) < _TINY else None
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(chosen, out=chosen)
    if far is not None:
        # In this range p is s, or q is (1 - c)(1 - s), and the logistic function is an exponential.
        exact = -np.abs(logits(theta, a, b)) + np.where(responses.right, 0.0, np.log1p(-c))
        logs[far] = exact[far]
    return responses.kept(logs)


def _first(responses: Responses, cell: Cells, c: Floats) -> tuple[Floats, Floats]:
    """First derivatives of each response's log-likelihood by z and by c; the latter is 0 if c is 0."""
    if not c.any():
        return responses.kept(responses.right - cell.s), np.broadcast_to(0.0, cell.s.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        odds = cell.q / cell.p
    surprise = np.where(responses.right, odds, -1.0)
    by_c = responses.kept(np.where(c > 0, surprise / (1 - c), 0.0))
    with np.errstate(invalid="ignore"):
        by_z = surprise * cell.s
    if not (c > 0).all():
        by_z = np.where(c > 0, by_z, responses.right - cell.s)
    return responses.kept(by_z), by_c
