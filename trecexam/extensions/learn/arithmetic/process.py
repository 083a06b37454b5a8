"""A Gaussian process over a query's passages, on the residuals of the regressions.

Rasmussen & Williams, "Gaussian Processes for Machine Learning", MIT Press 2006: equations 2.25 for the mean,
2.30 for the likelihood, 5.12 for leaving one out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.learn.arithmetic.passages import Floats, Vectors

#: At most so many judged passages of a query choose a kernel.
CHOSEN_BY = 64


@dataclass(frozen=True)
class Kernel:
    """constant + exp((cosine - 1) / length), and the noise of a judgment, all as shares of one variance.

    Attributes:
        constant: what all passages of a query have in common.
        length: how far neighbours reach, in cosine.
        noise: variance of a judgment around its mean.
    """

    constant: float
    length: float
    noise: float

    def between(self, some: Vectors, other_vectors: Vectors) -> Floats:
        """The covariances, without noise; shape (len(some), len(others))."""
        cosines = some.astype(np.float64) @ other_vectors.astype(np.float64).T
        return np.asarray(self.constant + np.exp((cosines - 1) / self.length))

    def judged(self, vectors: Vectors) -> Floats:
        """The covariances of judgments: with noise."""
        return self.between(vectors, vectors) + self.noise * np.eye(len(vectors))


#: What is chosen among.
KERNELS = tuple(
    Kernel(*values)
    for values in itertools.product((0.03, 0.1, 0.3), (0.1, 0.2, 0.3, 0.5), (0.3, 1.0, 3.0, 10.0))
)


def carried(kernel: Kernel, judged: Vectors, passages: Vectors) -> Floats:
    """The weight of each judged passage's residual for each passage; shape (passages, judged)."""
    return np.asarray(np.linalg.solve(kernel.judged(judged), kernel.between(judged, passages)).T)


def carried_from_others(kernel: Kernel, judged: Vectors, residuals: Floats) -> Floats:
    """Each judged passage's residual, predicted from the others of its query."""
    inverse = np.linalg.inv(kernel.judged(judged))
    return np.asarray(residuals - inverse @ residuals / np.diag(inverse))


def choose_kernel(queries: Sequence[tuple[Vectors, Floats]]) -> Kernel:
    """The kernel of `KERNELS` under which the residuals are the most likely, with the variance that makes
    them so.

    Args:
        queries: unit vectors of a query's judged passages, and their residuals by regressions that have
            seen no passage of that query; of each at most 64 are looked at, evenly spread.
    """
    sampled = [_spread_out(vectors, residuals) for vectors, residuals in queries]
    cosines = [vectors.astype(np.float64) @ vectors.astype(np.float64).T for vectors, _ in sampled]
    n = sum(len(residuals) for _, residuals in sampled)
    best, greatest = KERNELS[0], -math.inf
    for kernel in KERNELS:
        fit = determinant = 0.0
        for of_query, (_, residuals) in zip(cosines, sampled, strict=True):
            covariance = kernel.constant + np.exp((of_query - 1) / kernel.length)
            covariance[np.diag_indices_from(covariance)] += kernel.noise
            lower = np.linalg.cholesky(covariance)
            fit += float((np.linalg.solve(lower, residuals) ** 2).sum())
            determinant += 2 * float(np.log(np.diag(lower)).sum())
        # The likelihood has its maximum at the variance fit / n; residuals of 0 alone leave it at next to
        # nothing.
        likelihood = -0.5 * (determinant + n * math.log(max(fit / n, 1e-6)))
        if likelihood > greatest:
            best, greatest = kernel, likelihood
    return best


def _spread_out(vectors: Vectors, residuals: Floats) -> tuple[Vectors, Floats]:
    rows = np.unique(np.linspace(0, len(residuals) - 1, min(CHOSEN_BY, len(residuals))).astype(int))
    return vectors[rows], residuals[rows]
