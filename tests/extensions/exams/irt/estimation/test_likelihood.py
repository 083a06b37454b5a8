from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.exams.irt.components import Components
from trecexam.extensions.exams.irt.estimation import marginal
from trecexam.extensions.exams.irt.estimation.likelihood import (
    Responses,
    curvature,
    log_likelihood,
    with_gradient,
)
from trecexam.extensions.exams.irt.estimation.marginal import Z_95, AbilityPosterior, ability_posterior
from trecexam.extensions.exams.irt.estimation.objective import Objective, ParameterPoint
from trecexam.extensions.exams.irt.estimation.uncertainty import standard_errors
from trecexam.extensions.exams.irt.fitting import Fit, fit
from trecexam.extensions.exams.irt.model import probability
from trecexam.extensions.exams.irt.settings import PRIORS, Settings


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


def numerical_errors(objective: Objective, at: np.ndarray) -> np.ndarray:
    """From the inverse of the whole matrix of second derivatives, by finite differences."""
    low, high = objective.bounds().T
    room = 1e-6 * (high - low)
    free = np.flatnonzero((at > low + room) & (at < high - room))
    rows = []
    for n in free:
        step = np.where(np.arange(len(at)) == n, 1e-5, 0)
        rows.append((objective(at + step)[1] - objective(at - step)[1])[free] / 2e-5)
    found = np.full(len(at), np.nan)
    found[free] = np.sqrt(np.diag(np.linalg.inv(np.array(rows))))
    return found


def point_of(found: Fit) -> ParameterPoint:
    return ParameterPoint(found.a, found.b, found.c, found.theta)


@pytest.mark.parametrize("model", ["2pl", "3pl"])
def test_standard_errors_equal_those_of_the_full_information_matrix(simulate, model: str) -> None:  # type: ignore[no-untyped-def]
    values = simulate(model, 40, 12, 1).responses
    values[3, 5] = np.nan
    settings = Settings.of(model, priors=True)  # type: ignore[arg-type]
    found = fit(values, settings)
    objective = Objective(Responses(values), settings, None)
    parts = {name: getattr(found, name) for name in objective.free}
    expected = numerical_errors(objective, np.concatenate([*parts.values(), found.theta]))
    n = values.shape[1]
    for place, name in enumerate(parts):
        assert getattr(found, f"se_{name}") == pytest.approx(
            expected[place * n : (place + 1) * n], rel=2e-3, nan_ok=True
        )
    of_theta = standard_errors(objective, point_of(found)).theta
    assert of_theta == pytest.approx(expected[len(parts) * n :], rel=2e-3, nan_ok=True)


def test_a_parameter_at_a_bound_has_no_standard_error(simulate) -> None:  # type: ignore[no-untyped-def]
    found = fit(simulate("3pl", 40, 30, 2).responses)
    for name in "abc":
        at = found.bound[name]
        assert at.any()
        assert np.isnan(getattr(found, f"se_{name}")[at]).all()


def test_intervals_of_abilities_have_their_nominal_coverage(simulate) -> None:  # type: ignore[no-untyped-def]
    held = []
    for seed in range(5):
        made = simulate("1pl", 60, 80, seed)
        found = fit(made.responses, Settings.of("1pl"))
        held += (np.abs(found.theta - (made.theta - made.theta.mean())) < 1.96 * found.se_theta).tolist()
    assert 0.9 < np.mean(held) < 0.99


@pytest.mark.slow
@pytest.mark.parametrize("priors", [False, True])
def test_intervals_of_components_have_their_nominal_coverage(simulate, priors: bool) -> None:  # type: ignore[no-untyped-def]
    held = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        codes = np.stack([rng.integers(0, size, 60) for size in (5, 6, 3)])
        truth = [rng.normal(0, sd, size) for sd, size in ((0.8, 5), (0.5, 6), (0.3, 3))]
        theta = np.sum([levels[code] for levels, code in zip(truth, codes, strict=True)], axis=0)
        values = simulate("3pl", 60, 400, seed, theta=theta).responses
        components = Components.of(("llm", "retriever", "icl"), codes.T.astype(str).tolist())
        found = fit(values, Settings.of("3pl", priors=priors), components)
        for part, levels in zip(found.components, truth, strict=True):
            true = levels[[int(level) for level in part.levels]]
            held += (np.abs(part.theta - (true - true.mean())) < 1.96 * part.se).tolist()
    assert 0.9 < np.mean(held) < 0.985


def test_standard_errors_of_components_equal_a_model_without_redundant_parameters(simulate) -> None:  # type: ignore[no-untyped-def]
    codes = [(i % 2, (i // 2) % 2) for i in range(24)]
    theta = np.array([0.8 * i - 0.5 * j for i, j in codes])
    values = simulate("2pl", 24, 40, 3, theta=theta).responses
    settings = Settings.of("2pl", priors=True)
    components = Components.of(("x", "y"), [(str(i), str(j)) for i, j in codes])
    found = fit(values, settings, components)
    # The same model with as many columns as identifiable parameters: mean, x, y.
    x, y = np.array(codes).T
    small = np.stack([np.ones(24), x - 0.5, y - 0.5], axis=1)
    objective = Objective(Responses(values), settings, small)
    shares = [
        part.theta[part.levels.index("1")] - part.theta[part.levels.index("0")] for part in found.components
    ]
    at = np.concatenate([found.a, found.b, [found.mean, *shares]])
    expected = numerical_errors(objective, at)[-3:]
    whole = Objective(Responses(values), settings, components.design())
    levels = found.mean / 2 + np.concatenate([part.theta for part in found.components])
    covariance = standard_errors(whole, ParameterPoint(found.a, found.b, found.c, levels)).ability
    centring = components.centring()
    *of_levels, of_mean = np.sqrt(np.diag(centring @ covariance @ centring.T))
    assert of_mean == pytest.approx(expected[0], rel=2e-3)
    assert of_levels == pytest.approx(np.repeat(expected[1:] / 2, 2), rel=2e-3)


def test_confounded_components_are_reported_and_have_no_standard_error(simulate) -> None:  # type: ignore[no-untyped-def]
    values = simulate("2pl", 12, 20, 4).responses
    rows = [(f"L{i % 3}", f"R{i % 3}", str(i % 2)) for i in range(12)]
    found = fit(values, Settings.of("2pl"), Components.of(("llm", "retriever", "icl"), rows))
    assert any("cannot be separated" in note and "llm 'L0'" in note for note in found.notes)
    llm, retriever, icl = found.components
    assert np.isnan(llm.se).all()
    assert np.isnan(retriever.se).all()
    assert np.isfinite(icl.se).all()
    assert llm.theta == pytest.approx(retriever.theta)


def test_an_interval_reaches_the_farther_end_of_the_posteriors() -> None:
    posterior = AbilityPosterior(np.array([1.0, -1.0]), np.diag([0.04, 0.09]))
    errors = posterior.errors_of(np.array([1.5, -1.0]), np.eye(2))
    assert 1.5 - Z_95 * errors[0] == pytest.approx(1.0 - Z_95 * 0.2)
    assert errors[1] == pytest.approx(0.3)
