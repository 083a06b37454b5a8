"""Standard errors from the observed information of all parameters together.

The information matrix has the negative second derivatives of the maximised function: a 3 x 3 block per item,
a diagonal for abilities, and cross terms. Its inverse uses the Schur complement over the abilities, so that
500 x 500 take a second. A parameter at a bound counts as known and has no standard error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trecexam.extensions.exams.irt.estimation.likelihood import curvature
from trecexam.extensions.exams.irt.estimation.objective import Objective, ParameterPoint, anchor_directions
from trecexam.extensions.exams.irt.estimation.priors import log_prior
from trecexam.extensions.exams.irt.model import Floats

#: Tolerance for a value at its bound, as a share of the bounds' distance.
_AT = 1e-6
#: Factor between the anchor's steepness and the steepest response: practically exact.
_HELD = 1e4


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """Standard errors; NaN for a parameter at a bound, or not identified by the responses.

    Attributes:
        items: standard errors of a, b and c; shape (n_items, 3).
        theta: standard error of each examinee.
        ability: the covariance of the abilities: of the examinees or, with components, of the levels.
        joint: False if the information matrix is not positive definite; then each error treats all other
            parameters as known, and is too small.
    """

    items: Floats
    theta: Floats
    ability: Floats
    joint: bool


def standard_errors(objective: Objective, point: ParameterPoint) -> StandardErrors:
    """Return standard errors of an estimate with gradient 0."""
    settings, theta = objective.settings, objective.theta(point)
    curved = curvature(objective.responses, theta, point.a, point.b, point.c)
    items, by_theta = curved.items, curved.theta
    for parameter_index, (name, at) in enumerate(zip("abc", (point.a, point.b, point.c), strict=True)):
        if name in settings.priors:
            items[:, parameter_index, parameter_index] -= log_prior(name, settings.priors[name], at).second
    if "theta" in settings.priors:
        by_theta = by_theta - log_prior("theta", settings.priors["theta"], theta).second
    fixed = at_bound(objective, point)
    design = objective.design
    is_fixed = np.stack([fixed[name] for name in "abc"], axis=1)
    abilities = _abilities(objective, by_theta, theta, design)
    is_fixed |= _undetermined(items, is_fixed)[:, None]
    cross = np.where(is_fixed[None], 0.0, np.tensordot(design, curved.cross, axes=(0, 0)))
    cross[fixed["theta"]] = 0
    inverse = np.linalg.inv(_without(items, is_fixed))
    tied = np.einsum("kix,ixy->kiy", cross, inverse)
    flat = (len(design.T), -1)
    schur = abilities - tied.reshape(flat) @ cross.reshape(flat).T
    covariance = inverse_information(schur, fixed["theta"])
    joint = covariance is not None
    if covariance is None:
        covariance = inverse_information(np.diag(np.diag(abilities)), fixed["theta"])
        assert covariance is not None
        tied[:] = 0
    spread = np.einsum("kix,kl,liy->ixy", tied, covariance, tied, optimize=True)
    variances = np.diagonal(inverse + spread, axis1=1, axis2=2)
    of_items = np.where(is_fixed, np.nan, np.sqrt(np.maximum(variances, 0)))
    of_theta = np.sqrt(np.maximum(np.einsum("jk,kl,jl->j", design, covariance, design), 0))
    covariance[fixed["theta"]] = covariance[:, fixed["theta"]] = np.nan
    of_theta[(design @ fixed["theta"]) > 0] = np.nan
    return StandardErrors(of_items, of_theta, covariance, joint)


def at_bound(objective: Objective, point: ParameterPoint) -> dict[str, NDArray[np.bool_]]:
    """Return masks of a, b, c and abilities ("theta") at a bound or not fitted."""
    values = dict(zip(("a", "b", "c", "theta"), point, strict=True))
    bound = {}
    for name, (low, high) in objective.settings.bounds.items():
        room = _AT * (high - low)
        bound[name] = np.asarray((values[name] <= low + room) | (values[name] >= high - room), np.bool_)
    return bound


def _abilities(objective: Objective, by_theta: Floats, theta: Floats, design: Floats) -> Floats:
    """Return the block of the abilities: diagonal, except for the anchor and shared components."""
    held = anchor_directions(objective.settings.anchor, theta)
    steepest = _HELD * max(float(np.abs(by_theta).max()), 1.0)
    block: Floats = design.T @ (by_theta[:, None] * design)
    block += steepest * (held @ design).T @ (held @ design)
    return block


def _undetermined(items: Floats, is_fixed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the items whose block is singular: the responses do not identify all their parameters."""
    least = np.linalg.eigvalsh(_without(items, is_fixed))
    return np.asarray(least[:, 0] <= 1e-10 * np.maximum(least[:, -1], 1.0), np.bool_)


def _without(items: Floats, is_fixed: NDArray[np.bool_]) -> Floats:
    """Return the blocks with 1 on the diagonal and 0 beside it for fixed parameters."""
    either = is_fixed[:, :, None] | is_fixed[:, None, :]
    blocks: Floats = np.where(either, np.eye(3), items)
    return blocks


def inverse_information(matrix: Floats, is_fixed: NDArray[np.bool_]) -> Floats | None:
    """Return the inverse over free parameters; 0 for fixed ones and for directions without information.

    None if the matrix has a negative direction, so that the estimate is no maximum.
    """
    inverse = np.zeros_like(matrix)
    open_ = ~is_fixed
    if open_.any():
        values, vectors = np.linalg.eigh(matrix[np.ix_(open_, open_)])
        floor = 1e-9 * float(np.abs(values).max())
        if values[0] < -max(floor, 1e-6):
            return None
        informative = values > floor
        vectors = vectors[:, informative]
        inverse[np.ix_(open_, open_)] = (vectors / values[informative]) @ vectors.T
    return inverse
