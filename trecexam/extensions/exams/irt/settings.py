"""Settings of a fit: model, bounds, starts, priors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

ModelName = Literal["1pl", "2pl", "3pl"]
#: Anchors of the scale of abilities, which responses do not identify (see `Settings.anchor`).
Anchor = Literal["bounds", "mean", "standard", "prior"]
MODELS: tuple[ModelName, ...] = get_args(ModelName)
#: Model -> its item parameters.
FREE: Mapping[str, tuple[str, ...]] = {"1pl": ("b",), "2pl": ("a", "b"), "3pl": ("a", "b", "c")}
Pair = tuple[float, float]

#: Bounds and starts of the 3PL as published: Guinet et al., "Automated Evaluation of Retrieval-Augmented
#: Language Models with Task-Specific Exam Generation", ICML 2024, in its released code.
_PUBLISHED: Mapping[str, Pair] = {"a": (0.5, 1.5), "b": (0.01, 1.0), "c": (0.2, 0.4), "theta": (-3.0, 3.0)}
#: Bounds without guessing only keep estimates finite: no assumption on difficulty or discrimination is
#: needed.
_WIDE: Mapping[str, Pair] = {"a": (0.1, 4.0), "b": (-4.0, 4.0), "c": (0.0, 0.0), "theta": (-4.0, 4.0)}
BOUNDS: Mapping[str, Mapping[str, Pair]] = {
    "1pl": {**_WIDE, "a": (1.0, 1.0)},
    "2pl": _WIDE,
    "3pl": _PUBLISHED,
}
STARTS: Mapping[str, float] = {"a": 1.0, "b": 0.0, "c": 0.25, "theta": 0.0}
#: Digits after the point that are certain in estimates, standard errors and information. L-BFGS-B stops
#: where an iteration gains less than 1e-11 of the log-likelihood. Other starts or full convergence move the
#: estimates of matrices of 6 x 11 to 30 x 200 by up to 1e-4 with priors (a processor with other instructions:
#: by 1e-10). Only in the 2PL without priors, items that hardly discriminate move by up to 1e-2. So results
#: are printed with three digits, and values that agree to three digits are ties.
CERTAIN_DIGITS = 3
#: a: mean and standard deviation of ln a; b, theta: mean and standard deviation; c: alpha and beta.
PRIORS: Mapping[str, Pair] = {"a": (0.0, 0.5), "b": (0.0, 2.0), "c": (2.0, 5.0), "theta": (0.0, 1.0)}


@dataclass(frozen=True)
class Settings:
    """A model with its bounds and priors.

    Attributes:
        bounds: of a, b, c and theta: (low, high), equal where a parameter is not fitted. With components,
            those of theta are of each component's ability.
        priors: parameter -> two numbers, as in `PRIORS`; parameters without a prior are missing.
        max_iterations: maximum number of iterations of L-BFGS-B.
    """

    model: ModelName
    bounds: Mapping[str, Pair]
    priors: Mapping[str, Pair] = field(default_factory=dict)
    max_iterations: int = 5000

    @classmethod
    def of(cls, model: ModelName = "3pl", *, priors: bool = False) -> Settings:
        """Return the model's settings, with weak priors, or as published without them."""
        if model not in MODELS:
            raise ValueError(f"unknown model {model!r}; there are {', '.join(MODELS)}")
        fitted = (*FREE[model], "theta")
        return cls(model, BOUNDS[model], {name: PRIORS[name] for name in fitted} if priors else {})

    @cached_property
    def start(self) -> Mapping[str, float]:
        """Start values of a, b, c and theta, within the bounds."""
        return {name: min(max(STARTS[name], low), high) for name, (low, high) in self.bounds.items()}

    @property
    def anchor(self) -> Anchor:
        """The anchor of the scale of abilities, which the likelihood does not determine.

        Probabilities stay the same if a number is added to all abilities and difficulties; in the 2PL and
        3PL, also if these are multiplied by a number and all a divided by it.

        - "bounds": bounds of b on one side of 0 (the published bounds of the 3PL).
        - "prior": theta's prior, if there is one.
        - "mean": the examinees' mean ability is 0 (1PL, where a = 1 gives the unit).
        - "standard": their mean is 0 and their standard deviation 1 (elsewhere).
        """
        if "theta" in self.priors:
            return "prior"
        low, high = self.bounds["b"]
        if low >= 0 or high <= 0:
            return "bounds"
        return "mean" if self.bounds["a"][0] == self.bounds["a"][1] else "standard"
