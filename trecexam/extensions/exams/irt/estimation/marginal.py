"""The abilities' marginal posterior: every item integrated out over its prior, within its bounds.

Joint estimates of abilities and items stretch the abilities: each item has up to three parameters, which
become exact only with more examinees, not with more items (Neyman & Scott, "Consistent estimates based on
partially consistent observations", Econometrica 16, 1948). The curvature at the estimate does not show this.
Integrating over items avoids the stretch (Berger, Liseo & Wolpert, "Integrated likelihood methods for
eliminating nuisance parameters", Statistical Science 14, 1999):

    ln p(theta | r) = ln p(theta) + sum over items of ln of the integral of p(r_i | theta, x) p(x) dx + const

with x an item's a, b and c. All items have the same nodes x_g and weights w_g (Gauss-Legendre), so that the
integrals of all of them are products of matrices: r' ln p(theta, x_g), and the same of wrong responses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trecexam.extensions.exams.irt.estimation.objective import Objective, ParameterPoint
from trecexam.extensions.exams.irt.estimation.priors import log_prior
from trecexam.extensions.exams.irt.estimation.uncertainty import inverse_information
from trecexam.extensions.exams.irt.model import Floats, cells
from trecexam.extensions.exams.irt.settings import PRIORS, Settings

#: Minimum number of nodes for each parameter.
_LEAST = {"a": 7, "b": 7, "c": 5}
#: Nodes to each 1 of a parameter, at least; and by the root of the number of examinees, with which an item's
#: posterior narrows.
_DENSITY, _DENSITY_BY_ROOT = 2.0, 1 / 3
#: Discriminations beyond this range have negligible weight under the default prior.
_A_WITHIN = (math.exp(-2.0), math.exp(2.0))
#: Maximum number of products of responses and nodes (a dozen seconds).
_MOST = 5e8
_ITERATIONS = 200
#: Standard normal: 95% of it lies within this of its mean.
Z_95 = 1.959963984540054


class AbilityPosterior(NamedTuple):
    """The abilities' marginal posterior, as a normal distribution on the scale of the estimate.

    Attributes:
        ability: mode, for examinees or, with components, for levels.
        covariance: inverse of the curvature at the mode.
    """

    ability: Floats
    covariance: Floats

    def errors_of(self, estimates: Floats, of_ability: Floats) -> Floats:
        """Return standard errors of estimates whose 1.96-fold covers the posterior's 95% interval.

        Of two lengths, the larger: from an estimate to either end of the posterior's central 95% interval.

        Args:
            estimates: shape (n,).
            of_ability: linear map from abilities to estimates; shape (n, n_abilities).
        """
        centre = of_ability @ self.ability
        variance = np.einsum("ij,jk,ik->i", of_ability, self.covariance, of_ability)
        errors: Floats = np.abs(estimates - centre) / Z_95 + np.sqrt(np.maximum(variance, 0))
        return errors


class _Nodes(NamedTuple):
    """Values of a, b and c with the logarithms of their weights, which sum to 1; shape (n_nodes,) each."""

    a: Floats
    b: Floats
    c: Floats
    log_weight: Floats


class _Marginal:
    """The negative logarithm of the marginal posterior, to be minimised."""

    def __init__(self, objective: Objective, nodes: _Nodes) -> None:
        self.design, self.nodes = objective.design, nodes
        right = objective.responses.right
        self.right = right.astype(np.float64)
        self.wrong = (~right & objective.responses.given).astype(np.float64)
        self.prior = objective.settings.priors.get("theta", PRIORS["theta"])

    def _at(self, theta: Floats) -> tuple[float, Floats, Floats, Floats, Floats, Floats]:
        """Return the value; item weights, (n_items, n_nodes); s, p, and slopes of ln p and ln q by theta.

        The last four have shape (n_examinees, n_nodes).
        """
        from scipy.special import log_expit

        a, b, c, log_weight = self.nodes
        at = cells(theta, a, b, c)
        z = a * np.subtract.outer(theta, b)
        log_p = np.log(at.p) if c.any() else log_expit(z)
        logs = self.right.T @ log_p + self.wrong.T @ (log_expit(-z) + np.log1p(-c)) + log_weight
        highest = logs.max(axis=1, keepdims=True)
        weights = np.exp(logs - highest)
        sums = weights.sum(axis=1, keepdims=True)
        value = float((highest + np.log(sums)).sum())
        # p is at least c; if c is 0, s / p is 1.
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(c > 0, at.s / at.p, 1.0)
        return value, weights / sums, at.s, share, a * share * at.q, -a * at.s

    def __call__(self, ability: Floats) -> tuple[float, Floats]:
        theta = self.design @ ability
        value, weights, _, _, by_right, by_wrong = self._at(theta)
        slope = ((self.right @ weights) * by_right + (self.wrong @ weights) * by_wrong).sum(axis=1)
        prior = log_prior("theta", self.prior, theta)
        return -value - float(prior.value.sum()), -self.design.T @ (slope + prior.first)

    def information(self, ability: Floats) -> Floats:
        """Return the curvature by the abilities.

        Includes the covariance of the examinees' slopes under each item's posterior, for slopes linear in a,
        b and c.
        """
        theta = self.design @ ability
        _, weights, s, share, by_right, by_wrong = self._at(theta)
        a, b, c, _ = self.nodes
        of_wrong = -(a**2) * s * (1 - s)
        # ln p curves by a^2 ((1 - c)(1 - 2 s) s' / p - (1 - c)^2 s'^2 / p^2) with s' = s (1 - s).
        lift = (1 - c) * (1 - s) * share
        of_right = a**2 * lift * (1 - 2 * s - lift)
        curved = -((self.right @ weights) * of_right + (self.wrong @ weights) * of_wrong).sum(axis=1)
        curved -= log_prior("theta", self.prior, theta).second
        free = [values for values in (a, b, c) if np.ptp(values) > 0]
        means = [weights @ values for values in free]
        off = [weights * (values - mean[:, None]) for values, mean in zip(free, means, strict=True)]
        spread = np.stack([np.stack([part @ values for values in free], axis=1) for part in off], axis=1)
        slopes = np.stack(
            [self.right.T * (part @ by_right.T) + self.wrong.T * (part @ by_wrong.T) for part in off], axis=2
        )
        # An item whose posterior is on one node has no uncertainty.
        inverse = np.linalg.pinv(spread, rcond=1e-10, hermitian=True)
        shared = np.einsum("ijx,ixy,iky->jk", slopes, inverse, slopes, optimize=True)
        block: Floats = self.design.T @ (np.diag(curved) - shared) @ self.design
        return block


def ability_posterior(objective: Objective, point: ParameterPoint) -> AbilityPosterior | None:
    """Return the abilities' marginal posterior on the estimate's scale; None if it would take too long.

    Parameters without a prior in the settings get the weak prior of `PRIORS`: with a dozen examinees, the
    likelihood alone can make one item decide everything.

    Args:
        point: the estimate, the start of the search for the mode.
    """
    from scipy.optimize import minimize

    settings = objective.settings
    nodes = _nodes(settings, len(objective.responses.right))
    if nodes is None or objective.responses.right.size * len(nodes.a) > _MOST:
        return None
    marginal = _Marginal(objective, nodes)
    low, high = settings.bounds["theta"]
    done = minimize(
        marginal,
        point.ability,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high)] * len(point.ability),
        options={"maxiter": _ITERATIONS, "ftol": 1e-11, "gtol": 1e-7},
    )
    ability = np.clip(done.x, low, high)
    room = 1e-6 * (high - low)
    held = np.asarray((ability <= low + room) | (ability >= high - room), np.bool_)
    covariance = inverse_information(marginal.information(ability), held)
    if not done.success or covariance is None:
        return None
    return _anchored(AbilityPosterior(ability, covariance), objective)


def _nodes(settings: Settings, n_examinees: int) -> _Nodes | None:
    """Return nodes for each parameter, denser with more examinees, with weights under the priors."""
    axes, logs = [], []
    for name in "abc":
        low, high = settings.bounds[name]
        if name == "a" and low < high:
            low, high = max(low, _A_WITHIN[0]), min(high, _A_WITHIN[1])
        if low > high:
            return None
        if low == high:
            axes.append(np.array([low]))
            logs.append(np.zeros(1))
            continue
        density = max(_DENSITY, math.sqrt(n_examinees) * _DENSITY_BY_ROOT)
        number = max(_LEAST[name], math.ceil((high - low) * density))
        at, weight = np.polynomial.legendre.leggauss(number)
        values = low + (high - low) * (at + 1) / 2
        log = np.log(weight) + log_prior(name, settings.priors.get(name, PRIORS[name]), values).value
        axes.append(values)
        logs.append(log - np.logaddexp.reduce(log))
    a, b, c = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    return _Nodes(a, b, c, sum(np.meshgrid(*logs, indexing="ij"), np.zeros(1)).ravel())


def _anchored(posterior: AbilityPosterior, objective: Objective) -> AbilityPosterior:
    """Return the posterior on the scale of an estimate with mean 0 and standard deviation 1."""
    anchor, design = objective.settings.anchor, objective.design
    if anchor in ("bounds", "prior"):
        return posterior
    ability, covariance = posterior
    n = len(ability)
    theta = design @ ability
    # The direction that adds 1 to every examinee's ability.
    lifts = np.asarray(np.linalg.lstsq(design, np.ones(len(theta)), rcond=None)[0], np.float64)
    unit = float(theta.std()) if anchor == "standard" else 1.0
    moved = (ability - theta.mean() * lifts) / unit
    slope: Floats = np.eye(n) - np.outer(lifts, design.mean(axis=0))
    if anchor == "standard":
        slope -= np.outer(moved, (theta - theta.mean()) @ design / (len(theta) * unit))
    slope /= unit
    return AbilityPosterior(moved, slope @ covariance @ slope.T)
