"""The Gaussian process, against explicit solutions and leave-one-out fits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawn_pools import unit

from trecexam.extensions.learn.arithmetic.process import (
    KERNELS,
    Kernel,
    carried,
    carried_from_others,
    choose_kernel,
)


def covariance(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> float:
    cosine = float(a.astype(float) @ b.astype(float))
    return kernel.constant + math.exp((cosine - 1) / kernel.length)


def naive(kernel: Kernel, judged: np.ndarray, residuals: np.ndarray, passage: np.ndarray) -> float:
    """The mean of a passage's residual given the others'."""
    among = np.array([[covariance(kernel, a, b) for b in judged] for a in judged])
    across = np.array([covariance(kernel, a, passage) for a in judged])
    return float(across @ np.linalg.inv(among + kernel.noise * np.eye(len(judged))) @ residuals)


@pytest.mark.parametrize("n", [1, 5])
def test_the_residual_of_a_passage_equals_the_joint_normal_solution(n: int) -> None:
    rng = np.random.default_rng(4)
    kernel = Kernel(0.2, 0.4, 0.5)
    judged, passages, residuals = unit(rng, n), unit(rng, 3), rng.normal(size=n)
    # Passages without text have no vector.
    passages[2] = 0
    shares = carried(kernel, judged, passages)
    assert shares.shape == (3, n)
    by_hand = [naive(kernel, judged, residuals, passage) for passage in passages]
    assert shares @ residuals == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_leaving_one_out_equals_the_process_of_all_others(n: int) -> None:
    rng = np.random.default_rng(6)
    kernel = Kernel(0.1, 0.3, 0.3)
    vectors, residuals = unit(rng, n), rng.normal(size=n)
    by_hand = [
        naive(kernel, np.delete(vectors, at, 0), np.delete(residuals, at), vectors[at]) if n > 1 else 0
        for at in range(n)
    ]
    assert carried_from_others(kernel, vectors, residuals) == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("truth", [Kernel(0.3, 0.5, 0.3), Kernel(0.03, 0.1, 10.0)])
def test_the_chosen_kernel_maximises_the_likelihood_over_variances(truth: Kernel) -> None:
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(7)
    queries = []
    for _ in range(6):
        vectors = unit(rng, 20)
        queries.append((vectors, rng.multivariate_normal(np.zeros(20), 2 * truth.judged(vectors))))

    def likelihood(kernel: Kernel) -> float:
        fit = sum(r @ np.linalg.inv(kernel.judged(v)) @ r for v, r in queries) / 120
        best, *others = (
            sum(multivariate_normal.logpdf(r, cov=times * fit * kernel.judged(v)) for v, r in queries)
            for times in (1, 0.95, 1.05)
        )
        assert best > max(others)
        return float(best)

    assert choose_kernel(queries) == max(KERNELS, key=likelihood)


def test_of_a_query_with_many_judgments_64_evenly_spread_ones_are_used() -> None:
    rng = np.random.default_rng(8)
    vectors = unit(rng, 200)
    residuals = rng.multivariate_normal(np.zeros(200), Kernel(0.1, 0.3, 0.3).judged(vectors))
    rows = np.linspace(0, 199, 64).astype(int)
    others = np.setdiff1d(np.arange(200), rows)
    noisy = residuals.copy()
    noisy[others] = 50 * rng.normal(size=len(others))
    assert choose_kernel([(vectors, noisy)]) == choose_kernel([(vectors[rows], residuals[rows])])
    assert choose_kernel([(vectors[others], noisy[others])]) != choose_kernel([(vectors, noisy)])


def test_without_residuals_to_explain_a_kernel_is_still_chosen() -> None:
    assert choose_kernel([(unit(np.random.default_rng(9), 5), np.zeros(5))]) in KERNELS
