"""Reasons for which an item is flagged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trecexam.extensions.exams.irt.exam import Exam, FittedExam
from trecexam.extensions.exams.irt.fitting import fit
from trecexam.extensions.exams.irt.model import probability
from trecexam.extensions.exams.irt.settings import Settings


def test_duplicate_reversed_flat_and_constant_items_are_flagged_with_a_reason() -> None:
    rng = np.random.default_rng(5)
    theta = np.linspace(-2, 2, 40)
    values = (rng.random((40, 12)) < probability(theta, np.full(12, 1.5), np.zeros(12))).astype(float)
    values[:, 1] = values[:, 0]
    values[:, 2] = theta < 0
    values[:, 3], values[:, 4] = 1, 0
    found = fit(values, Settings.of("2pl", priors=True))
    a = found.a.copy()
    a[5] = 0.1
    names = tuple(f"s{n}" for n in range(40)), tuple(f"q{n}" for n in range(12))
    notes = [one.note for one in FittedExam(Exam(*names, values), replace(found, a=a)).quality]
    assert notes[0] == notes[1] == "redundant"
    assert notes[2].startswith("weaker examinees get it right more often")
    assert notes[3:5] == ["all got it right", "no one got it right"]
    assert notes[5] == "uninformative"
    assert set(notes[6:]) == {""}


def test_an_interval_covers_95_percent() -> None:
    values = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1.0]])
    found = fit(values, Settings.of("1pl", priors=True))
    exam = FittedExam(Exam(tuple("abcd"), tuple("wxyz"), values), found)
    theta, se = found.theta[0], found.se_theta[0]
    assert exam.interval(0) == pytest.approx((theta - 1.95996 * se, theta + 1.95996 * se), abs=1e-4)
