from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from trecexam.extensions.exams.irt.model import Floats, probability


@dataclass(frozen=True)
class Simulated:
    responses: Floats
    theta: Floats
    a: Floats
    b: Floats
    c: Floats


def simulate(model: str, n_examinees: int, n_items: int, seed: int, theta: Floats | None = None) -> Simulated:
    """Responses drawn from a model with known parameters."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, 1, n_examinees) if theta is None else theta
    if model == "3pl":
        a, b, c = (rng.uniform(low, high, n_items) for low, high in ((0.5, 1.5), (0.01, 1), (0.2, 0.4)))
    else:
        a = rng.lognormal(0, 0.4, n_items) if model == "2pl" else np.ones(n_items)
        b, c = rng.normal(0, 1, n_items), np.zeros(n_items)
    chance = probability(theta, a, b, c)
    return Simulated((rng.random(chance.shape) < chance).astype(float), theta, a, b, c)


@pytest.fixture(name="simulate")
def _simulate() -> object:
    return simulate
