"""What is fitted and how: model, bounds, starts, priors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

ModelName = Literal["1pl", "2pl", "3pl"]
#: What holds the scale of abilities, which the responses alone do not (see `Settings.anchor`).
Anchor = Literal["bounds", "mean", "standard", "prior"]
MODELS: tuple[ModelName, ...] = get_args(ModelName)
PARAMETERS = ("a", "b", "c", "theta")
#: In which parameters each model differs between items.
FREE: Mapping[str, tuple[str, ...]] = {"1pl": ("b",), "2pl": ("a", "b"), "3pl": ("a", "b", "c")}
Pair = tuple[float, float]

#: The 3PL's as published: Guinet et al., "Automated Evaluation of Retrieval-Augmented Language Models with
#: Task-Specific Exam Generation", ICML 2024, in its released code.
_PUBLISHED: Mapping[str, Pair] = {"a": (0.5, 1.5), "b": (0.01, 1.0), "c": (0.2, 0.4), "theta": (-3.0, 3.0)}
#: Without guessing nothing says that an item is harder than the average examinee is able, or that all items
#: discriminate alike: bounds are to keep estimates finite, no more.
_WIDE: Mapping[str, Pair] = {"a": (0.1, 4.0), "b": (-4.0, 4.0), "c": (0.0, 0.0), "theta": (-4.0, 4.0)}
BOUNDS: Mapping[str, Mapping[str, Pair]] = {
    "1pl": {**_WIDE, "a": (1.0, 1.0)},
    "2pl": _WIDE,
    "3pl": _PUBLISHED,
}
STARTS: Mapping[str, float] = {"a": 1.0, "b": 0.0, "c": 0.25, "theta": 0.0}
#: a: mean and standard deviation of ln a; b, theta: mean and standard deviation; c: alpha and beta.
PRIORS: Mapping[str, Pair] = {"a": (0.0, 0.5), "b": (0.0, 2.0), "c": (2.0, 5.0), "theta": (0.0, 1.0)}
#: A prior tighter than this is a bound, and its square has no digits left.
_LEAST_SPREAD = 1e-6


@dataclass(frozen=True)
class Settings:
    """A model with its bounds, starts and priors, all of them possible; `Settings.of` fills in defaults.

    Attributes:
        bounds: of a, b, c and theta: (low, high), equal where a parameter is not fitted. With components,
            those of theta are of each component's ability.
        start: of a, b, c and theta, within the bounds.
        priors: of those that have one; see `PRIORS` for what the two numbers are.
        clipped: the starts that were asked for and lie outside their bounds.
        max_iterations: of L-BFGS-B.
        tolerance: it stops where an iteration gains less than this share of the log-likelihood.
    """

    model: ModelName
    bounds: Mapping[str, Pair]
    start: Mapping[str, float]
    priors: Mapping[str, Pair] = field(default_factory=dict)
    clipped: Mapping[str, float] = field(default_factory=dict)
    max_iterations: int = 5000
    tolerance: float = 1e-11

    @classmethod
    def of(
        cls,
        model: ModelName = "3pl",
        *,
        bounds: Mapping[str, Pair] | None = None,
        start: Mapping[str, float] | None = None,
        priors: Mapping[str, Pair] | bool = False,
        max_iterations: int = 5000,
    ) -> Settings:
        """The model's settings with these in place of the defaults.

        Args:
            bounds, start: by parameter: "a", "b", "c", "theta".
            priors: True for all of `PRIORS` that the model has; or by parameter.

        Raises:
            ValueError: an unknown model or parameter, one that the model does not have, or impossible values.
        """
        if model not in MODELS:
            raise ValueError(f"unknown model {model!r}; there are {', '.join(MODELS)}")
        own = (*FREE[model], "theta")
        if priors is True:
            priors = {name: PRIORS[name] for name in own}
        own_priors = dict(priors or {})
        for what, given in (("bounds", bounds or {}), ("a start", start or {}), ("a prior", own_priors)):
            for name in given:
                if name not in PARAMETERS:
                    raise ValueError(f"unknown parameter '{name}'; there are {', '.join(PARAMETERS)}")
                if name not in own:
                    raise ValueError(f"{what} of {name}: the {model} fits no {name}")
        between = {**BOUNDS[model], **(bounds or {})}
        starts = {**STARTS, **(start or {})}
        for name, pair in between.items():
            _check_bounds(name, pair)
        for name, pair in own_priors.items():
            _check_prior(name, pair, between[name])
        if not all(map(math.isfinite, starts.values())):
            raise ValueError("a start is no finite number")
        begin = {name: min(max(starts[name], low), high) for name, (low, high) in between.items()}
        clipped = {name: starts[name] for name in own if begin[name] != starts[name]}
        if max_iterations < 1:
            raise ValueError("max_iterations: at least 1 needed")
        return cls(model, between, begin, own_priors, clipped, max_iterations)

    @property
    def anchor(self) -> Anchor:
        """What holds the scale of abilities, as the likelihood does not.

        Adding a number to all abilities and difficulties changes no probability; in the 2PL and 3PL,
        multiplying them by one and dividing all a by it changes none either.

        - "bounds": the bounds do, where those of b lie on one side of 0 (the published ones of the 3PL).
        - "prior": theta's prior does, where there is one.
        - "mean": the examinees' mean ability is 0 (1PL, where a = 1 gives the unit).
        - "standard": their mean is 0 and their standard deviation 1 (elsewhere).
        """
        if "theta" in self.priors:
            return "prior"
        low, high = self.bounds["b"]
        if low >= 0 or high <= 0:
            return "bounds"
        return "mean" if self.bounds["a"][0] == self.bounds["a"][1] else "standard"


def _check_bounds(name: str, pair: Pair) -> None:
    low, high = pair
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"bounds of {name}: {low:g} to {high:g} are no finite range")
    if name == "c" and not (low >= 0 and high < 1):
        raise ValueError(f"bounds of c: {low:g} to {high:g} are not within 0 and below 1")


def _check_prior(name: str, pair: Pair, bounds: Pair) -> None:
    first, second = pair
    if not (math.isfinite(first) and _LEAST_SPREAD <= second < math.inf):
        raise ValueError(
            f"prior of {name}: {first:g}, {second:g}: finite numbers needed, the second at least "
            f"{_LEAST_SPREAD:g}"
        )
    if name == "c" and first <= 0:
        raise ValueError(f"prior of c: alpha and beta must be above 0, found {first:g}, {second:g}")
    if name == "a" and bounds[0] <= 0:
        raise ValueError("a log-normal prior of a needs bounds of a above 0")
    if name == "c" and bounds[0] <= 0 and first < 1:
        raise ValueError("prior of c: an alpha below 1 needs bounds of c above 0")
