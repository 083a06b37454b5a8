"""The objective of L-BFGS-B: negative log-likelihood minus log-priors plus the anchor of the scale."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trecexam.extensions.exams.irt.estimation.likelihood import Responses, by_item, with_gradient
from trecexam.extensions.exams.irt.estimation.priors import log_prior
from trecexam.extensions.exams.irt.model import Floats
from trecexam.extensions.exams.irt.settings import Anchor, Settings


class ParameterPoint(NamedTuple):
    """A value of every parameter.

    Attributes:
        a, b, c: shape (n_items,).
        ability: theta of each examinee; with components, of each level of each.
    """

    a: Floats
    b: Floats
    c: Floats
    ability: Floats


class Objective:
    """The function to minimise, of a vector of the free a, b, c and the abilities."""

    def __init__(self, responses: Responses, settings: Settings, design: Floats | None) -> None:
        """Prepare the objective; `design` is as for `Components.design`, None for an ability per examinee."""
        self.responses, self.settings = responses, settings
        n_examinees, self.n_items = responses.right.shape
        self.design = np.eye(n_examinees) if design is None else design
        self.n_abilities = self.design.shape[1]
        self.free = tuple(name for name in "abc" if settings.bounds[name][0] < settings.bounds[name][1])
        # As steep as the responses to one examinee: neither slack nor stiff.
        self.weight = int(responses.given.sum()) / 10

    def start(self) -> Floats:
        """Return the start vector."""
        parts = [np.full(self.n_items, self.settings.start[name]) for name in self.free]
        return np.concatenate([*parts, np.full(self.n_abilities, self.settings.start["theta"])])

    def bounds(self) -> Floats:
        """Return the bounds of each parameter; shape (n_free, 2)."""
        parts = [np.tile(self.settings.bounds[name], (self.n_items, 1)) for name in self.free]
        return np.concatenate([*parts, np.tile(self.settings.bounds["theta"], (self.n_abilities, 1))])

    def point(self, vector: Floats) -> ParameterPoint:
        """Return the parameters in the vector."""
        n = self.n_items
        items = {name: np.full(n, self.settings.start[name]) for name in "abc"}
        for parameter_index, name in enumerate(self.free):
            items[name] = vector[parameter_index * n : (parameter_index + 1) * n]
        return ParameterPoint(items["a"], items["b"], items["c"], vector[len(self.free) * n :])

    def theta(self, point: ParameterPoint) -> Floats:
        """Return the examinees' abilities."""
        theta: Floats = self.design @ point.ability
        return theta

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        """Return the value and its gradient."""
        point = self.point(vector)
        theta = self.theta(point)
        value, slope = with_gradient(self.responses, theta, point.a, point.b, point.c)
        slopes = slope._asdict()
        for name, at in (("a", point.a), ("b", point.b), ("c", point.c), ("theta", theta)):
            if name in self.settings.priors:
                prior = log_prior(name, self.settings.priors[name], at)
                value += float(prior.value.sum())
                slopes[name] = slopes[name] + prior.first
        held, pull = anchoring(self.settings.anchor, theta)
        value -= self.weight * held
        by_theta = slopes["theta"] - self.weight * pull
        return -value, -np.concatenate([*(slopes[name] for name in self.free), self.design.T @ by_theta])

    def by_item(self, point: ParameterPoint) -> Floats:
        """Return each item's log-likelihood plus log-priors at the same abilities; shape (n_items,)."""
        value = by_item(self.responses, self.theta(point), point.a, point.b, point.c)
        for name, at in zip("abc", point, strict=False):
            if name in self.settings.priors:
                value += log_prior(name, self.settings.priors[name], at).value
        return value


def anchoring(anchor: Anchor, theta: Floats) -> tuple[float, Floats]:
    """Return the penalty for abilities off the anchored scale (0 on it), and its derivatives.

    The likelihood is constant along the anchored directions, so without active bounds the penalty ends at 0.
    """
    pull = np.zeros_like(theta)
    if anchor in ("bounds", "prior"):
        return 0.0, pull
    m, mean = len(theta), theta.mean()
    off = float(mean**2)
    pull += 2 * mean / m
    if anchor == "standard":
        spread = float(theta.var()) - 1
        off += spread**2
        pull += 4 * spread * (theta - mean) / m
    return off, pull


def anchor_directions(anchor: Anchor, theta: Floats) -> Floats:
    """Return the anchored directions of abilities as unit vectors; shape (0 to 2, n_examinees)."""
    if anchor in ("bounds", "prior"):
        return np.zeros((0, len(theta)))
    level = np.ones((1, len(theta)))
    directions = level if anchor == "mean" else np.concatenate([level, [theta - theta.mean()]])
    unit: Floats = directions / np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-12)
    return unit
