"""L-BFGS-B over items and abilities together, in scaled units."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trecexam.extensions.exams.irt.estimation.likelihood import curvature
from trecexam.extensions.exams.irt.estimation.objective import Objective, ParameterPoint
from trecexam.extensions.exams.irt.model import Floats

#: Corrections that L-BFGS-B keeps: twice the default, since more memory saves many iterations.
_KEPT = 20
#: L-BFGS-B stops where an iteration gains less than this share of the log-likelihood.
_TOLERANCE = 1e-11
#: Maximum iterations per item from a corner (three parameters).
_CORNER_ITERATIONS = 40
#: Maximum number of responses for a second optimisation, which then takes a fraction of a second.
_SMALL = 20_000
#: Corners of the bounds of a, b and c (1 is the upper bound) to restart an item with guessing from.
_CORNERS = ({"a": 1, "b": 1, "c": 0}, {"a": 1, "b": 0, "c": 1})


class Optimum(NamedTuple):
    """The result of an optimisation.

    Attributes:
        iterations: iterations over all parameters, in the better optimisation.
        why: message of L-BFGS-B.
    """

    point: ParameterPoint
    converged: bool
    iterations: int
    why: str


def optimum(objective: Objective) -> Optimum:
    """Return the highest maximum of the likelihood or posterior among several starts.

    The likelihood can have several maxima if items differ in a. At given abilities, so can that of an item
    with guessing: a harder item with less guessing, or an easier item with more. So with guessing, every item
    is optimised again from two corners of its bounds, and all parameters continue from the better result. For
    a small matrix, where single items weigh most, a second optimisation uses unscaled parameters.
    """
    best, best_value = _climbed(objective, objective.start(), _scale(objective))
    if best.converged and "c" in objective.free and objective.responses.right.size <= _SMALL:
        start = objective.start()
        other, value = _climbed(objective, start, np.ones_like(start))
        # By more than rounding: prefer the first, reproducible optimisation.
        if other.converged and value < best_value - 1e-7:
            best = other
    return best


def _climbed(objective: Objective, start: Floats, scale: Floats) -> tuple[Optimum, float]:
    """Minimise from one start; return the point and the value."""
    bounds, most = objective.bounds(), objective.settings.max_iterations
    vector, done = _minimised(objective, start, bounds, scale, most)
    iterations = int(done.nit)
    if "c" in objective.free and done.success:
        better = _from_corners(objective, vector, bounds, scale)
        vector, done = _minimised(objective, better, bounds, scale, most)
        iterations += int(done.nit)
    end = Optimum(objective.point(vector), bool(done.success), iterations, str(done.message))
    return end, float(done.fun)


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
        # Rounding could move the start beyond a bound.
        np.clip(start * scale, low * scale, high * scale),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds * scale[:, None],
        options={
            "maxcor": _KEPT,
            "ftol": _TOLERANCE,
            "gtol": 1e-8,
            "maxiter": most,
            "maxfun": 2 * most,
        },
    )
    return np.clip(done.x / scale, low, high), done


def _scale(objective: Objective) -> Floats:
    """Return the square root of the likelihood's curvature at the start, for each parameter.

    Curvatures are means over a kind of parameter, since a single item's may vanish at the start. The value
    for a includes b, since the likelihood is flat in a where ability equals difficulty.
    """
    point = objective.point(objective.start())
    theta = objective.theta(point)
    curved = curvature(objective.responses, theta, point.a, point.b, point.c, cross=False)
    items = np.abs(np.diagonal(curved.items, axis1=1, axis2=2)).mean(axis=0)
    kinds = {"a": items[1], "b": items[1], "c": items[2]}
    of_theta = np.abs(curved.theta)
    ability = float(np.mean((objective.design**2).T @ of_theta))
    parts = [np.full(objective.n_items, kinds[name]) for name in objective.free]
    steep = np.concatenate([*parts, np.full(objective.n_abilities, ability)])
    scale: Floats = np.sqrt(np.maximum(steep, 1e-6))
    return scale


def _from_corners(objective: Objective, vector: Floats, bounds: Floats, scale: Floats) -> Floats:
    """Return the vector with better item parameters at the same abilities."""
    n = objective.n_items
    n_items_part = len(objective.free) * n
    held = bounds.copy()
    held[n_items_part:] = vector[n_items_part:, None]
    best, best_values = vector.copy(), objective.by_item(objective.point(vector))
    for corner in _CORNERS:
        start = vector.copy()
        for parameter_index, name in enumerate(objective.free):
            start[parameter_index * n : (parameter_index + 1) * n] = objective.settings.bounds[name][
                corner[name]
            ]
        tried, _ = _minimised(objective, start, held, scale, _CORNER_ITERATIONS)
        values = objective.by_item(objective.point(tried))
        better = np.tile(values > best_values + 1e-9, len(objective.free))
        best[:n_items_part][better] = tried[:n_items_part][better]
        best_values = np.maximum(values, best_values)
    return best
