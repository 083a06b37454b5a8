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

#: Maximum number of a query's judged passages for choosing a kernel.
CHOSEN_BY = 64


@dataclass(frozen=True)
class Kernel:
    """The kernel constant + exp((cosine - 1) / length) plus noise of judgments, as shares of one variance.

    Attributes:
        constant: covariance of all passages of a query.
        length: length scale in cosine.
        noise: variance of a judgment around the mean.
    """

    constant: float
    length: float
    noise: float

    def covariances(self, cosines: Floats) -> Floats:
        """Return the covariances of passages with these cosines, without noise."""
        return np.asarray(self.constant + np.exp((cosines - 1) / self.length))

    def judged(self, cosines: Floats) -> Floats:
        """Return the covariances of judgments of passages with these cosines, with noise."""
        return self.covariances(cosines) + self.noise * np.eye(len(cosines))


#: Candidate kernels.
KERNELS = tuple(
    Kernel(*values)
    for values in itertools.product((0.03, 0.1, 0.3), (0.1, 0.2, 0.3, 0.5), (0.3, 1.0, 3.0, 10.0))
)


def cosines(some: Vectors, other_vectors: Vectors) -> Floats:
    """Return the cosines of unit vectors, shape (len(some), len(others))."""
    return np.asarray(some.astype(np.float64) @ other_vectors.astype(np.float64).T)


def carried(kernel: Kernel, judged: Vectors, passages: Vectors) -> Floats:
    """Return the weight of each judged passage's residual for each passage; shape (passages, judged)."""
    across = kernel.covariances(cosines(judged, passages))
    return np.asarray(np.linalg.solve(kernel.judged(cosines(judged, judged)), across).T)


def carried_from_others(kernel: Kernel, judged: Vectors, residuals: Floats) -> Floats:
    """Predict each judged passage's residual from the others of its query."""
    inverse = np.linalg.inv(kernel.judged(cosines(judged, judged)))
    return np.asarray(residuals - inverse @ residuals / np.diag(inverse))


def choose_kernel(queries: Sequence[tuple[Vectors, Floats]]) -> Kernel:
    """Choose the kernel of `KERNELS` with the greatest likelihood of the residuals, at its best variance.

    Args:
        queries: unit vectors of a query's judged passages, and their residuals by regressions fitted without
            this query; at most 64 per query are used, evenly spread.
    """
    sampled = []
    for vectors, residuals in queries:
        rows = np.unique(np.linspace(0, len(residuals) - 1, min(CHOSEN_BY, len(residuals))).astype(int))
        sampled.append((cosines(vectors[rows], vectors[rows]), residuals[rows]))
    n = sum(len(residuals) for _, residuals in sampled)
    best, greatest = KERNELS[0], -math.inf
    for kernel in KERNELS:
        fit = determinant = 0.0
        for between, residuals in sampled:
            lower = np.linalg.cholesky(kernel.judged(between))
            fit += float((np.linalg.solve(lower, residuals) ** 2).sum())
            determinant += 2 * float(np.log(np.diag(lower)).sum())
        # The likelihood has its maximum at the variance fit / n; residuals of only 0 leave it at next to
        # nothing.
        likelihood = -0.5 * (determinant + n * math.log(max(fit / n, 1e-6)))
        if likelihood > greatest:
            best, greatest = kernel, likelihood
    return best
