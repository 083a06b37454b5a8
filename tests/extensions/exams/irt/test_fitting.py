from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from trecexam.extensions.exams.irt.estimation.likelihood import Responses, log_likelihood
from trecexam.extensions.exams.irt.estimation.objective import Objective
from trecexam.extensions.exams.irt.fitting import Fit, fit
from trecexam.extensions.exams.irt.improvement import improve, least_discriminating, n_dropped
from trecexam.extensions.exams.irt.model import exam_information, item_information, probability
from trecexam.extensions.exams.irt.settings import Settings
from trecexam.extensions.exams.responses import Exam
from trecexam.extensions.exams.results import ExamFit


def naive_log_likelihood(values: np.ndarray, found: Fit) -> float:
    total = 0.0
    for j, row in enumerate(values):
        for i, response in enumerate(row):
            p = found.c[i] + (1 - found.c[i]) / (1 + math.exp(-found.a[i] * (found.theta[j] - found.b[i])))
            if not math.isnan(response):
                total += math.log(p if response else 1 - p)
    return total


def reference(values: np.ndarray, settings: Settings) -> float:
    """The best log-likelihood of a slow optimiser: without our gradient, with projection onto the bounds."""

    def negative(vector: np.ndarray) -> float:
        n = values.shape[1]
        a, b, c, theta = np.split(vector, [n, 2 * n, 3 * n])
        p = c + (1 - c) / (1 + np.exp(-a * (theta[:, None] - b)))
        return float(-np.log(np.where(values == 1, p, 1 - p)).sum())

    m, n = values.shape
    bounds = [
        settings.bounds[name]
        for name, size in (("a", n), ("b", n), ("c", n), ("theta", m))
        for _ in range(size)
    ]
    start = [
        settings.start[name]
        for name, size in (("a", n), ("b", n), ("c", n), ("theta", m))
        for _ in range(size)
    ]
    # scipy's numerical gradient, a dense quasi-Newton matrix, and active sets: nothing of L-BFGS-B.
    done = minimize(negative, start, method="SLSQP", bounds=bounds, options={"maxiter": 500, "ftol": 1e-10})
    return -float(done.fun)


@pytest.mark.parametrize(("shape", "seed"), [((8, 6), 0), ((12, 5), 1), ((6, 12), 2)])
@pytest.mark.parametrize("model", ["3pl", "2pl"])
def test_no_slow_optimiser_finds_a_higher_likelihood(
    simulate,
    shape: tuple[int, int],
    seed: int,
    model: str,  # type: ignore[no-untyped-def]
) -> None:
    values = simulate("3pl", *shape, seed).responses
    # Published bounds identify the 2PL too: the two then maximise the same function.
    bounds = {"a": (0.5, 1.5), "b": (0.01, 1.0), "theta": (-3.0, 3.0)}
    plain = Settings.of(model)  # type: ignore[arg-type]
    settings = replace(plain, bounds={**plain.bounds, **bounds})
    assert settings.anchor == "bounds"
    assert fit(values, settings).log_likelihood >= reference(values, settings) - 1e-4


def test_the_reported_likelihood_belongs_to_the_reported_parameters(simulate) -> None:  # type: ignore[no-untyped-def]
    values = simulate("3pl", 20, 15, 3).responses
    values[2, 3] = values[7, 7] = np.nan
    for settings in (Settings.of("3pl"), Settings.of("2pl", priors=True), Settings.of("1pl")):
        found = fit(values, settings)
        assert found.converged
        assert found.log_likelihood == pytest.approx(naive_log_likelihood(values, found), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "least"), [("1pl", {"b": 0.96}), ("2pl", {"a": 0.75, "b": 0.94}), ("3pl", {"a": 0.5, "b": 0.4})]
)
def test_parameters_are_recovered(simulate, model: str, least: dict[str, float]) -> None:  # type: ignore[no-untyped-def]
    made = simulate(model, 200, 100, 11)
    found = fit(made.responses, Settings.of(model))  # type: ignore[arg-type]
    assert np.corrcoef(found.theta, made.theta)[0, 1] > (0.88 if model == "3pl" else 0.95)
    for name, correlation in least.items():
        assert np.corrcoef(getattr(found, name), getattr(made, name))[0, 1] > correlation
    assert found.log_likelihood > log_likelihood(
        Responses(made.responses), made.theta, made.a, made.b, made.c
    )


def test_the_2pl_is_anchored_at_mean_0_and_sd_1_and_the_1pl_at_mean_0(simulate) -> None:  # type: ignore[no-untyped-def]
    made = simulate("2pl", 60, 40, 6, theta=np.random.default_rng(0).normal(1.5, 0.7, 60))
    two = fit(made.responses, Settings.of("2pl"))
    assert two.theta.mean() == pytest.approx(0, abs=0.02)
    assert two.theta.std() == pytest.approx(1, abs=0.02)
    one = fit(made.responses, Settings.of("1pl"))
    assert one.theta.mean() == pytest.approx(0, abs=0.02)
    assert (one.a == 1).all()
    assert not one.c.any()


@pytest.mark.parametrize("priors", [False, True])
def test_constant_items_and_perfect_examinees_give_nan_only_in_standard_errors(
    simulate,
    priors: bool,  # type: ignore[no-untyped-def]
) -> None:
    values = simulate("2pl", 15, 10, 8).responses
    values[:, 0], values[:, 1], values[0], values[1] = 1, 0, 1, 0
    values[0, 1], values[1, 0] = 0, 1
    for model in ("1pl", "2pl", "3pl"):
        found = fit(values, Settings.of(model, priors=priors))
        for part in (found.a, found.b, found.c, found.theta, found.accuracy):
            assert np.isfinite(part).all()
        assert np.isnan(found.se_b[:2]).all()
        assert np.isnan(found.se_a[:2]).all()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([[1, 0]], "1 examinee: at least two"),
        ([[1], [0]], "1 item: at least two"),
        ([[1, 0], [1, 0]], "the same response from all"),
        ([[1, 2], [0, 1]], "a response is 2"),
        ([[1, math.inf], [0, 1]], "a response is inf"),
        ([[1, math.nan], [0, math.nan]], "without any response"),
        ([[math.nan, math.nan], [0, 1]], "without any response"),
        ([1, 0], "examinees x items"),
    ],
)
def test_a_matrix_that_cannot_be_fitted_is_rejected_with_the_reason(values: list, reason: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(ValueError, match=reason):
        fit(values)


def test_the_baseline_is_the_mean_of_each_examinee(simulate) -> None:  # type: ignore[no-untyped-def]
    values = simulate("3pl", 12, 9, 2).responses
    values[0, 0] = np.nan
    found = fit(values)
    p = probability(found.theta, found.a, found.b, found.c)
    squares, plain = [], []
    for j, row in enumerate(values):
        mean = np.nanmean(row)
        for i, response in enumerate(row):
            if not math.isnan(response):
                squares.append((response - p[j, i]) ** 2)
                plain.append((response - mean) ** 2)
    assert found.errors.model == pytest.approx(math.sqrt(np.mean(squares)))
    assert found.errors.baseline == pytest.approx(math.sqrt(np.mean(plain)))


@pytest.mark.parametrize(("c", "compat"), [(0.25, False), (0.0, False), (0.0, True)])
def test_information_is_the_expected_curvature_of_the_log_likelihood(c: float, compat: bool) -> None:
    theta, a, b, h = np.array([-2.0, 0.3, 4.0]), 1.3, 0.4, 1e-6
    p = [c + (1 - c) / (1 + np.exp(-a * (theta + step - b))) for step in (-h, 0, h)]
    slope = (p[2] - p[0]) / (2 * h)
    expected = slope**2 / (p[1] * (1 - p[1]))
    assert item_information(theta, a, b, c, compat=compat)[:, 0] == pytest.approx(expected, rel=1e-6)


def test_information_equals_the_formula_and_compat_the_released_code() -> None:
    theta, a, b, c = 0.7, np.array([0.8, 1.4]), np.array([0.2, 0.9]), np.array([0.2, 0.35])
    p = c + (1 - c) / (1 + np.exp(-a * (theta - b)))
    q = 1 - p
    assert item_information([theta], a, b, c)[0] == pytest.approx(a**2 * q / p * ((p - c) / (1 - c)) ** 2)
    assert item_information([theta], a, b, c, compat=True)[0] == pytest.approx(a**2 * p * q)
    assert exam_information([theta], a, b, c)[0] == pytest.approx(item_information([theta], a, b, c).sum())


@given(st.integers(2, 5000), st.floats(0.001, 0.999))
def test_the_dropped_share_is_off_by_at_most_half_an_item(n: int, drop: float) -> None:
    assert n_dropped(n, drop) == 1 or abs(n_dropped(n, drop) - n * drop) <= 0.5 + 1e-6


def test_each_step_is_a_separate_fit_to_the_remaining_items(simulate) -> None:  # type: ignore[no-untyped-def]
    values = simulate("2pl", 40, 30, 1).responses
    values[:, 4] = 1
    settings = Settings.of("2pl", priors=True)
    found = improve(values, settings, steps=3, drop=0.1)
    assert [len(step.items) for step in found.steps] == [30, 27, 24, 22]
    assert 4 in found.steps[1].dropped
    for before, step in zip(found.steps, found.steps[1:], strict=False):
        assert set(before.items) == set(step.items) | set(step.dropped)
        again = fit(values[:, step.items], settings)
        assert step.fit.a == pytest.approx(again.a)
        left = [before.fit.a[list(before.items).index(i)] for i in step.items]
        gone = [before.fit.a[list(before.items).index(i)] for i in step.dropped if i != 4]
        assert max(gone) <= min(left) + 1e-9


def test_rounding_at_a_bound_does_not_change_the_order() -> None:
    values = np.array([[1, 0, 1.0], [0, 1, 1.0], [1, 1, 0.0], [0, 0, 1.0]])
    found = fit(values, Settings.of("2pl", priors=True))
    a, b = np.array([0.1 + 1e-13, 0.1, 0.1]), np.array([9.0, 0.0, 3.0])
    bound = replace(found, a=a, b=b, c=np.zeros(3), theta=np.zeros(4))
    assert least_discriminating(bound, np.zeros(3, bool)).tolist() == [0, 2, 1]


def test_an_interval_covers_95_percent() -> None:
    values = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1.0]])
    found = fit(values, Settings.of("1pl", priors=True))
    exam = ExamFit.of(Exam("m", tuple("abcd"), tuple("wxyz"), values), found)
    row = next(row for row in exam if row["examinee"] == "a")
    theta, se = found.theta[0], found.se_theta[0]
    assert row["theta.low"] == pytest.approx(theta - 1.95996 * se, abs=1e-3)
    assert row["theta.high"] == pytest.approx(theta + 1.95996 * se, abs=1e-3)
    assert row["se"] == pytest.approx(se, abs=1e-3)


def test_an_estimate_is_within_bounds_and_a_local_optimum(simulate) -> None:  # type: ignore[no-untyped-def]
    values = simulate("3pl", 30, 25, 4).responses
    settings = Settings.of("3pl")
    found = fit(values, settings)
    objective = Objective(Responses(values), settings, None)
    at = np.concatenate([found.a, found.b, found.c, found.theta])
    low, high = objective.bounds().T
    assert ((low <= at) & (at <= high)).all()
    _, gradient = objective(at)
    assert np.abs(np.clip(at - gradient, low, high) - at).max() < 0.02


def test_anchoring_does_not_lower_the_likelihood(simulate) -> None:  # type: ignore[no-untyped-def]
    made = simulate("2pl", 300, 60, 9)
    anchored = fit(made.responses, Settings.of("2pl"))
    assert not any(anchored.bound[name].any() for name in ("a", "b", "theta"))
    assert (anchored.theta.mean(), anchored.theta.std()) == pytest.approx((0, 1), abs=1e-4)
    objective = Objective(Responses(made.responses), Settings.of("2pl"), None)
    moved = log_likelihood(
        objective.responses, anchored.theta * 1.1 + 0.2, anchored.a / 1.1, anchored.b * 1.1 + 0.2, anchored.c
    )
    assert moved == pytest.approx(anchored.log_likelihood, rel=1e-12)
