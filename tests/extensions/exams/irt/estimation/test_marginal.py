from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from trecexam.extensions.exams.irt.estimation import marginal
from trecexam.extensions.exams.irt.estimation.likelihood import Responses
from trecexam.extensions.exams.irt.estimation.marginal import Z_95, AbilityPosterior, ability_posterior
from trecexam.extensions.exams.irt.estimation.objective import Objective, ParameterPoint
from trecexam.extensions.exams.irt.fitting import fit
from trecexam.extensions.exams.irt.settings import PRIORS, Settings


def of(values: np.ndarray, settings: Settings) -> marginal._Marginal:
    nodes = marginal._nodes(settings, len(values))
    assert nodes is not None
    return marginal._Marginal(Objective(Responses(values), settings, None), nodes)


def density(name: str, x: float) -> float:
    """Up to a constant."""
    first, second = PRIORS[name]
    if name == "a":
        return math.exp(-((math.log(x) - first) ** 2) / (2 * second**2)) / x
    if name == "c":
        return x ** (first - 1) * (1 - x) ** (second - 1)
    return math.exp(-((x - first) ** 2) / (2 * second**2))


def brute(values: np.ndarray, theta: np.ndarray, settings: Settings, points: int) -> float:
    """ln p(theta | responses), up to a constant: each item summed over midpoints by loops."""
    axes = []
    for name in "abc":
        low, high = settings.bounds[name]
        number = points if high > low else 1
        axes.append([low + (high - low) * (k + 0.5) / number for k in range(number)])
    total = -float((theta**2).sum()) / 2
    for item in values.T:
        integral = mass = 0.0
        for a, b, c in itertools.product(*axes):
            weight = density("a", a) * density("b", b) * (density("c", c) if c else 1.0)
            product = 1.0
            for response, ability in zip(item, theta, strict=True):
                p = c + (1 - c) / (1 + math.exp(-a * (ability - b)))
                if not math.isnan(response):
                    product *= p if response else 1 - p
            integral += weight * product
            mass += weight
        total += math.log(integral / mass)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("model", "points", "within"), [("3pl", 24, 1e-3), ("2pl", 150, 5e-3)])
def test_integration_over_items_equals_a_sum_over_many_points(
    simulate,  # type: ignore[no-untyped-def]
    model: str,
    points: int,
    within: float,
) -> None:
    values = simulate(model, 7, 3, 1).responses
    values[2, 1] = np.nan
    settings = Settings.of(model)  # type: ignore[arg-type]
    objective = of(values, settings)
    rng = np.random.default_rng(0)
    one, two = rng.normal(0, 1, (2, 7))
    expected = brute(values, one, settings, points) - brute(values, two, settings, points)
    assert objective(two)[0] - objective(one)[0] == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("model", ["1pl", "2pl", "3pl"])
def test_gradient_and_curvature_equal_finite_differences(simulate, model: str) -> None:  # type: ignore[no-untyped-def]
    values = simulate(model, 12, 40, 3).responses
    values[0, 0] = values[4, 7] = np.nan
    objective = of(values, Settings.of(model))  # type: ignore[arg-type]
    at = np.random.default_rng(1).normal(0, 1, 12)
    steps = 1e-5 * np.eye(12)
    slopes = [(objective(at + step)[0] - objective(at - step)[0]) / 2e-5 for step in steps]
    assert objective(at)[1] == pytest.approx(slopes, rel=1e-4, abs=1e-5)
    curved = np.array([(objective(at + step)[1] - objective(at - step)[1]) / 2e-5 for step in steps])
    # What is not linear in an item's parameters is left out of what it takes away.
    assert np.diag(objective.information(at)) == pytest.approx(np.diag(curved), rel=0.08)
    assert objective.information(at) == pytest.approx(curved, abs=0.08 * np.diag(curved).max())


def test_an_interval_reaches_the_farther_end_of_the_posteriors() -> None:
    posterior = AbilityPosterior(np.array([1.0, -1.0]), np.diag([0.04, 0.09]))
    errors = posterior.errors_of(np.array([1.5, -1.0]), np.eye(2))
    assert 1.5 - Z_95 * errors[0] == pytest.approx(1.0 - Z_95 * 0.2)
    assert errors[1] == pytest.approx(0.3)


@pytest.mark.parametrize("model", ["1pl", "2pl"])
def test_the_posterior_is_on_the_scale_of_the_estimate(simulate, model: str) -> None:  # type: ignore[no-untyped-def]
    values = simulate(model, 40, 60, 2, theta=np.random.default_rng(3).normal(1, 0.8, 40)).responses
    settings = Settings.of(model)  # type: ignore[arg-type]
    found = fit(values, settings)
    posterior = ability_posterior(
        Objective(Responses(values), settings, None), ParameterPoint(found.a, found.b, found.c, found.theta)
    )
    assert posterior is not None
    assert posterior.ability.mean() == pytest.approx(0, abs=1e-9)
    level = np.ones(40)
    assert level @ posterior.covariance @ level == pytest.approx(0, abs=1e-9)
    if model == "2pl":
        assert posterior.ability.std() == pytest.approx(1)
        assert posterior.ability @ posterior.covariance @ posterior.ability == pytest.approx(0, abs=1e-9)


def test_if_items_cannot_be_integrated_out_the_curvature_is_used_with_a_note(
    simulate,  # type: ignore[no-untyped-def]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = simulate("2pl", 20, 15, 3).responses
    whole = fit(values, Settings.of("2pl", priors=True))
    monkeypatch.setattr(marginal, "_MOST", 1)
    bare = fit(values, Settings.of("2pl", priors=True))
    assert any("curvature alone" in note for note in bare.notes)
    assert not any("curvature alone" in note for note in whole.notes)
    assert bare.theta == pytest.approx(whole.theta)
    assert np.isfinite(bare.se_theta).all()
