from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trecexam.extensions.exams.irt.fitting import fit
from trecexam.extensions.exams.irt.improvement import improve, least_discriminating, n_dropped
from trecexam.extensions.exams.irt.model import exam_information, item_information
from trecexam.extensions.exams.irt.settings import Settings
from trecexam.extensions.exams.responses import Exam
from trecexam.extensions.exams.results import ExamFit


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


def test_information_is_not_nan_at_extreme_abilities() -> None:
    for c in (0.0, 0.2):
        found = item_information([-1e4, 1e4], [1.0, 4.0], [0.0, 1.0], [c, 0.0])
        assert np.isfinite(found).all()
        assert found == pytest.approx(0)


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


def test_items_at_the_same_bound_are_ordered_by_their_information(simulate) -> None:  # type: ignore[no-untyped-def]
    values = simulate("3pl", 20, 30, 2).responses
    found = fit(values)
    same = np.zeros(30, bool)
    order = least_discriminating(found, same)
    told = item_information(found.theta, found.a, found.b, found.c).mean(axis=0)
    lowest = [n for n in order if np.isclose(found.a[n], 0.5)]
    assert len(lowest) > 2
    assert list(order[: len(lowest)]) == lowest
    assert (np.diff(told[lowest]) >= -1e-3 * told[lowest][1:]).all()


def test_improvement_stops_by_its_rules(simulate) -> None:  # type: ignore[no-untyped-def]
    values = simulate("2pl", 30, 12, 3).responses
    settings = Settings.of("2pl", priors=True)
    few = improve(values, settings, steps=50, drop=0.6)
    assert len(few.steps[-1].items) >= 2
    assert few.stopped == "fewer than 2 items would remain"
    for arguments in ({"steps": 0}, {"drop": 0.0}, {"drop": 1.0}):
        with pytest.raises(ValueError, match="at least one step"):
            improve(values, settings, **arguments)


def test_improvement_stops_if_the_remaining_items_separate_nobody() -> None:
    values = np.array([[1, 0, 1.0], [0, 1, 1.0], [1, 1, 1.0], [0, 0, 1.0]])
    found = improve(values, Settings.of("2pl", priors=True), steps=9, drop=0.4)
    assert found.stopped


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
