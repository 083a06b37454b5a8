"""A Gaussian process over the passages of a query, on what the steps leave unexplained of its judgments.

Rasmussen & Williams, "Gaussian Processes for Machine Learning", MIT Press 2006: equations 2.25, 2.26 for mean
and variance, 2.30 for the likelihood, 5.12 for leaving one out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from trecexam.extensions.learn.arithmetic.features import Floats, Vectors

#: Judged passages of a query by which a kernel is chosen, at most.
CHOSEN_BY = 64


@dataclass(frozen=True)
class Kernel:
    """variance * (constant + exp((cosine - 1) / length)), and the noise of a judgment.

    Attributes:
        constant: what all passages of a query have in common.
        length: how far neighbours reach, in cosine.
        noise: variance of a judgment around its mean, as a share of `variance`.
        variance: in squared labels.
    """

    constant: float = 0.1
    length: float = 0.3
    noise: float = 0.3
    variance: float = 1.0

    def between(self, some: Vectors, others: Vectors) -> Floats:
        """The covariances, without noise; shape (len(some), len(others))."""
        cosines = some.astype(np.float64) @ others.astype(np.float64).T
        return np.asarray(self.variance * (self.constant + np.exp((cosines - 1) / self.length)))

    def judged(self, vectors: Vectors) -> Floats:
        """The covariances of judgments: with noise."""
        return self.between(vectors, vectors) + self.noise * self.variance * np.eye(len(vectors))


#: What is chosen among.
KERNELS = tuple(
    Kernel(constant, length, noise)
    for constant, length, noise in itertools.product((0.03, 0.1, 0.3), (0.1, 0.2, 0.3, 0.5), (0.3, 1.0, 3.0))
)


def posterior(kernel: Kernel, judged: Vectors, residuals: Floats, passages: Vectors) -> tuple[Floats, Floats]:
    """Mean and variance of passages' residuals; the variance is that of a person's judgment, noise included.

    Args:
        judged: unit vectors of judged passages, shape (n, dimension).
        residuals: of their judgments, shape (n,).
        passages: unit vectors, shape (m, dimension).
    """
    prior = kernel.variance * (kernel.constant + 1 + kernel.noise)
    if not len(judged):
        return np.zeros(len(passages)), np.full(len(passages), prior)
    across = kernel.between(judged, passages)
    solved = np.linalg.solve(kernel.judged(judged), np.column_stack([residuals, across]))
    variance = prior - (across * solved[:, 1:]).sum(axis=0)
    return np.asarray(across.T @ solved[:, 0]), np.maximum(variance, kernel.noise * kernel.variance)


def joint_posterior(
    kernel: Kernel, judged: Vectors, residuals: Floats, passages: Vectors
) -> tuple[Floats, Floats]:
    """As `posterior`, with the covariance matrix of all passages' judgments, shape (m, m); noise included."""
    covariance = kernel.judged(passages)
    if not len(judged):
        return np.zeros(len(passages)), covariance
    across = kernel.between(judged, passages)
    solved = np.linalg.solve(kernel.judged(judged), np.column_stack([residuals, across]))
    return np.asarray(across.T @ solved[:, 0]), np.asarray(covariance - across.T @ solved[:, 1:])


def leave_one_out(kernel: Kernel, judged: Vectors, residuals: Floats) -> Floats:
    """The mean of each judged passage's residual, by all others of its query."""
    return unseen_posterior(kernel, judged, residuals)[0]


def unseen_posterior(kernel: Kernel, judged: Vectors, residuals: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each judged passage's residual, by all others of its query."""
    if not len(judged):
        return np.zeros(0), np.zeros(0)
    inverse = np.linalg.inv(kernel.judged(judged))
    diagonal = np.diag(inverse)
    return np.asarray(residuals - inverse @ residuals / diagonal), np.sqrt(1 / diagonal)


def choose_kernel(queries: Sequence[tuple[Vectors, Floats]], kernels: Iterable[Kernel] = KERNELS) -> Kernel:
    """The kernel under which the residuals are the most likely, with the variance that makes them so.

    Args:
        queries: unit vectors of a query's judged passages, and their residuals by regressions that have
            seen no passage of that query; of each at most 64 are looked at, evenly spread.
    """
    sampled = [_spread_out(vectors, residuals) for vectors, residuals in queries if len(residuals)]
    n = sum(len(residuals) for _, residuals in sampled)
    if not n:
        return Kernel()
    best, best_likelihood = Kernel(), -math.inf
    cosines = [vectors.astype(np.float64) @ vectors.astype(np.float64).T for vectors, _ in sampled]
    for kernel in kernels:
        fit = determinant = 0.0
        for of_query, (_, residuals) in zip(cosines, sampled, strict=True):
            covariance = kernel.constant + np.exp((of_query - 1) / kernel.length)
            covariance[np.diag_indices_from(covariance)] += kernel.noise
            lower = np.linalg.cholesky(covariance)
            fit += float((np.linalg.solve(lower, residuals) ** 2).sum())
            determinant += 2 * float(np.log(np.diag(lower)).sum())
        # The likelihood has its maximum at this variance; residuals of 0 alone leave it at next to nothing.
        variance = max(fit / n, 1e-6)
        likelihood = -0.5 * (fit / variance + determinant + n * math.log(2 * math.pi * variance))
        if likelihood > best_likelihood:
            best = Kernel(kernel.constant, kernel.length, kernel.noise, variance)
            best_likelihood = likelihood
    return best


def _spread_out(vectors: Vectors, residuals: Floats) -> tuple[Vectors, Floats]:
    rows = np.unique(np.linspace(0, len(residuals) - 1, min(CHOSEN_BY, len(residuals))).astype(int))
    return vectors[rows], residuals[rows]
