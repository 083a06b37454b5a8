"""L-BFGS-B over items and abilities together, in units in which all are about as steep."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trecexam.irt.estimation.likelihood import curvature
from trecexam.irt.estimation.objective import Objective, Point
from trecexam.irt.model import Floats

#: Corrections that L-BFGS-B keeps: twice the usual, as far fewer iterations cost more than a little memory.
_KEPT = 20
#: Iterations that an item gets from a corner; it has three parameters.
_CORNER_ITERATIONS = 40
#: Responses, with which a second way to the maximum takes a fraction of a second.
_SMALL = 20_000
#: Which ends of the bounds of a, b and c (1 is the upper one) an item with guessing is tried from again.
_CORNERS = ({"a": 1, "b": 1, "c": 0}, {"a": 1, "b": 0, "c": 1})


class Optimum(NamedTuple):
    """Where it ended, and how.

    Attributes:
        iterations: of all parameters together.
        why: what L-BFGS-B said.
    """

    point: Point
    converged: bool
    iterations: int
    why: str


def optimum(objective: Objective) -> Optimum:
    """A maximum of the likelihood, or of the posterior, from the settings' start.

    At given abilities an item's likelihood in a, b and c can have several maxima: a harder item that is
    guessed less, or an easier one that is guessed more. So with guessing every item is tried again from two
    corners of its bounds, the better one is kept, and all parameters go on from there. A small matrix, where
    single items weigh most, is also gone at by another way, in plain units, and the better end is kept.
    """
    bounds, scale = objective.bounds(), _scale(objective)
    most = objective.settings.max_iterations
    vector, done = _minimised(objective, objective.start(), bounds, scale, most)
    iterations = int(done.nit)
    if "c" in objective.free and done.success:
        if objective.responses.right.size <= _SMALL:
            other, again = _minimised(objective, objective.start(), bounds, np.ones_like(scale), most)
            iterations += int(again.nit)
            if again.fun < done.fun:
                vector = other
        better = _from_corners(objective, vector, bounds, scale)
        vector, done = _minimised(objective, better, bounds, scale, most)
        iterations += int(done.nit)
    return Optimum(objective.point(vector), bool(done.success), iterations, str(done.message))


def _minimised(
    objective: Objective, start: Floats, bounds: Floats, scale: Floats, most: int
) -> tuple[Floats, Any]:
    from scipy.optimize import minimize

    def scaled(vector: Floats) -> tuple[float, Floats]:
        value, gradient = objective(vector / scale)
        return value, gradient / scale

    low, high = bounds.T
    done = minimize(
        scaled,
        # A rounding beyond a bound would start outside of them.
        np.clip(start * scale, low * scale, high * scale),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds * scale[:, None],
        options={
            "maxcor": _KEPT,
            "ftol": objective.settings.tolerance,
            "gtol": 1e-8,
            "maxiter": most,
            "maxfun": 2 * most,
        },
    )
    return np.clip(done.x / scale, low, high), done


def _scale(objective: Objective) -> Floats:
    """For each number of the vector the root of how curved the likelihood is in it at the start.

    The mean over its kind: one item's own may be next to nothing there and much elsewhere. For a, which is
    flat where ability is difficulty, b stands in.
    """
    point = objective.point(objective.start())
    found = curvature(objective.responses, objective.theta(point), point.a, point.b, point.c)
    items = np.abs(np.diagonal(found.items, axis1=1, axis2=2)).mean(axis=0)
    kinds = {"a": items[1], "b": items[1], "c": items[2]}
    theta = np.abs(found.theta)
    ability = float(np.mean(theta if objective.design is None else (objective.design**2).T @ theta))
    parts = [np.full(objective.n_items, kinds[name]) for name in objective.free]
    steep = np.concatenate([*parts, np.full(objective.n_abilities, ability)])
    scale: Floats = np.sqrt(np.maximum(steep, 1e-6))
    return scale


def _from_corners(objective: Objective, vector: Floats, bounds: Floats, scale: Floats) -> Floats:
    """The vector with better values of the items for which there are some, at the same abilities."""
    n = objective.n_items
    n_items_part = len(objective.free) * n
    held = bounds.copy()
    held[n_items_part:] = vector[n_items_part:, None]
    kept, worth = vector.copy(), objective.by_item(objective.point(vector))
    for corner in _CORNERS:
        start = vector.copy()
        for place, name in enumerate(objective.free):
            start[place * n : (place + 1) * n] = objective.settings.bounds[name][corner[name]]
        tried, _ = _minimised(objective, start, held, scale, _CORNER_ITERATIONS)
        found = objective.by_item(objective.point(tried))
        better = np.tile(found > worth + 1e-9, len(objective.free))
        kept[:n_items_part][better] = tried[:n_items_part][better]
        worth = np.maximum(found, worth)
    return kept
