from __future__ import annotations

import numpy as np
import pytest

from trecexam.extensions.exams.irt.components import Components
from trecexam.extensions.exams.irt.estimation.likelihood import Responses
from trecexam.extensions.exams.irt.estimation.objective import Objective, ParameterPoint
from trecexam.extensions.exams.irt.estimation.uncertainty import standard_errors
from trecexam.extensions.exams.irt.fitting import Fit, fit
from trecexam.extensions.exams.irt.settings import Settings


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


def test_a_constant_component_is_left_out_with_a_note(simulate) -> None:  # type: ignore[no-untyped-def]
    values = simulate("2pl", 6, 20, 4).responses
    found = fit(values, None, Components.of(("llm", "lang"), [(f"L{i % 2}", "en") for i in range(6)]))
    assert [part.name for part in found.components] == ["llm"]
    assert any("left out component 'lang'" in note for note in found.notes)
    with pytest.raises(ValueError, match="every component has the same level"):
        fit(values, None, Components.of(("lang",), [("en",)] * 6))
