"""The logarithms of the priors' densities, up to a constant, with their first two derivatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trecexam.extensions.exams.irt.model import Floats
from trecexam.extensions.exams.irt.settings import Pair


class LogPrior(NamedTuple):
    """Log-density of each value up to a constant, and its first two derivatives."""

    value: Floats
    first: Floats
    second: Floats


def log_prior(name: str, pair: Pair, at: Floats) -> LogPrior:
    """Return the prior of a parameter at some values.

    Args:
        name: "a" is log-normal, "c" a beta distribution, "b" and "theta" are normal.
        pair: the prior's two numbers, see `trecexam.extensions.exams.irt.settings.PRIORS`.
    """
    if name == "c":
        return _beta(pair, at)
    mean, sd = pair
    if name == "a":
        # ln a is normal, so the density of a has a factor 1/a.
        log, variance = np.log(at), sd**2
        d = (log - mean) / variance
        return LogPrior(
            -((log - mean) ** 2) / (2 * variance) - log, -(d + 1) / at, (d + 1 - 1 / variance) / at**2
        )
    d = (at - mean) / sd**2
    return LogPrior(-((at - mean) ** 2) / (2 * sd**2), -d, np.full_like(at, -1 / sd**2))


def _beta(pair: Pair, at: Floats) -> LogPrior:
    alpha, beta = pair
    left, right = alpha - 1, beta - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (left * np.log(at) if left else 0 * at) + right * np.log1p(-at)
        first = (left / at if left else 0 * at) - right / (1 - at)
        second = (-left / at**2 if left else 0 * at) - right / (1 - at) ** 2
    return LogPrior(value, first, second)
