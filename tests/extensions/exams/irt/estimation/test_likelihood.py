from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.exams.irt.estimation.likelihood import (
    Responses,
    curvature,
    log_likelihood,
    with_gradient,
)
from trecexam.extensions.exams.irt.estimation.objective import Objective
from trecexam.extensions.exams.irt.model import probability
from trecexam.extensions.exams.irt.settings import Settings


def naive_probability(theta: float, a: float, b: float, c: float) -> float:
    return c + (1 - c) / (1 + math.exp(-a * (theta - b)))


def drawn(seed: int, model: str, n_examinees: int = 5, n_items: int = 4, missing: float = 0.2):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    values = (rng.random((n_examinees, n_items)) < 0.5).astype(float)
    values[rng.random(values.shape) < missing] = np.nan
    a, b, theta = rng.uniform(0.3, 2, n_items), rng.normal(0, 1, n_items), rng.normal(0, 1.5, n_examinees)
    c = np.zeros(n_items)
    if model == "3pl":
        c = rng.uniform(0.05, 0.4, n_items)
    elif model == "mixed":
        c[::2] = 0.2
    return values, theta, a, b, c


@pytest.mark.parametrize("model", ["2pl", "3pl", "mixed"])
@pytest.mark.parametrize("seed", range(3))
def test_the_log_likelihood_is_the_sum_over_all_observed_responses(model: str, seed: int) -> None:
    values, theta, a, b, c = drawn(seed, model)
    expected = 0.0
    for j, row in enumerate(values):
        for i, response in enumerate(row):
            if not math.isnan(response):
                p = naive_probability(theta[j], a[i], b[i], c[i])
                expected += math.log(p if response else 1 - p)
    assert log_likelihood(Responses(values), theta, a, b, c) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", ["2pl", "3pl", "mixed"])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_equals_finite_differences(model: str, seed: int) -> None:
    values, *at = drawn(seed, model)
    responses = Responses(values)
    _, gradient = with_gradient(responses, *at)
    for place, slope in enumerate((gradient.theta, gradient.a, gradient.b, gradient.c)):
        for n in range(len(at[place])):
            if place == 3 and not at[3][n]:
                continue
            ends = []
            for step in (1e-6, -1e-6):
                moved = [one.copy() for one in at]
                moved[place][n] += step
                ends.append(log_likelihood(responses, *moved))
            assert slope[n] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=2e-7)


@pytest.mark.parametrize("model", ["2pl", "3pl", "mixed"])
def test_the_curvature_equals_differences_of_the_gradient(model: str) -> None:
    values, theta, a, b, c = drawn(7, model)
    responses = Responses(values)
    found = curvature(responses, theta, a, b, c)

    def slopes(moved: list[np.ndarray]) -> np.ndarray:
        _, g = with_gradient(responses, *moved)
        return np.concatenate([g.theta, g.a, g.b, g.c])

    m, n = values.shape
    steps = np.empty((m + 3 * n, m + 3 * n))
    place = 0
    for which in range(4):
        for k in range(len((theta, a, b, c)[which])):
            ends = []
            for step in (1e-6, -1e-6):
                moved = [theta.copy(), a.copy(), b.copy(), c.copy()]
                moved[which][k] += step
                ends.append(slopes(moved))
            steps[place] = -(ends[0] - ends[1]) / 2e-6
            place += 1
    for i in range(n):
        known = c[i] > 0
        own = [m + i, m + n + i, m + 2 * n + i][: 3 if known else 2]
        assert found.items[i][: len(own), : len(own)] == pytest.approx(steps[np.ix_(own, own)], abs=1e-5)
        assert found.cross[:, i, : len(own)] == pytest.approx(steps[:m][:, own], abs=1e-5)
    assert found.theta == pytest.approx(np.diag(steps)[:m], abs=1e-5)


@pytest.mark.parametrize("model", ["1pl", "2pl", "3pl"])
@pytest.mark.parametrize("components", [False, True])
def test_the_gradient_of_the_objective_includes_priors_anchor_and_components(
    model: str, components: bool
) -> None:
    rng = np.random.default_rng(3)
    values = (rng.random((6, 5)) < 0.5).astype(float)
    design = np.repeat(np.eye(3), 2, axis=0) if components else None
    for priors in (False, True):
        objective = Objective(Responses(values), Settings.of(model, priors=priors), design)  # type: ignore[arg-type]
        low, high = objective.bounds().T
        at = np.clip(objective.start() + rng.normal(0, 0.2, len(low)), low + 1e-3, high - 1e-3)
        _, gradient = objective(at)
        for n in range(len(at)):
            step = np.where(np.arange(len(at)) == n, 1e-6, 0)
            slope = (objective(at + step)[0] - objective(at - step)[0]) / 2e-6
            assert gradient[n] == pytest.approx(slope, abs=1e-6)


@given(
    st.floats(-1e6, 1e6),
    st.floats(1e-3, 1e3),
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 1e-9, 0.25, 0.999]),
    st.sampled_from([0.0, 1.0]),
)
def test_nothing_overflows_however_far_ability_and_difficulty_differ(
    theta: float, a: float, b: float, c: float, response: float
) -> None:
    at = [np.array([value]) for value in (theta, a, b, c)]
    p = float(probability(*at)[0, 0])
    assert c <= p <= 1
    total, gradient = with_gradient(Responses(np.array([[response]])), *at)
    assert math.isfinite(total)
    assert total <= 0
    assert all(np.isfinite(one).all() for one in gradient)


@pytest.mark.parametrize(
    ("response", "c", "expected"), [(1.0, 0.0, -2000.0), (0.0, 0.3, math.log(0.7) - 2000)]
)
def test_logarithms_stay_exact_where_probabilities_are_too_small_for_a_float(
    response: float, c: float, expected: float
) -> None:
    theta = -1000.0 if response else 1000.0
    found = log_likelihood(
        Responses(np.array([[response]])), *(np.array([value]) for value in (theta, 2.0, 0.0, c))
    )
    assert found == pytest.approx(expected, rel=1e-12)


def test_missing_responses_have_no_effect(simulate) -> None:  # type: ignore[no-untyped-def]
    made = simulate("3pl", 8, 6, 0)
    values = np.concatenate([made.responses, np.full((2, 6), np.nan)])
    theta = np.concatenate([made.theta, [0.3, -0.4]])
    whole = with_gradient(Responses(values), theta, made.a, made.b, made.c)
    part = with_gradient(Responses(made.responses), made.theta, made.a, made.b, made.c)
    assert whole[0] == pytest.approx(part[0])
    assert whole[1].theta[8:].tolist() == [0, 0]
    assert whole[1].c == pytest.approx(part[1].c)
