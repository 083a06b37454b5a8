"""Reasons for which an item is flagged."""

from __future__ import annotations

import numpy as np
import pytest

from trecexam.extensions.exams.irt.exam import Exam, FittedExam
from trecexam.extensions.exams.irt.fitting import fit
from trecexam.extensions.exams.irt.settings import Settings


def test_an_interval_covers_95_percent() -> None:
    values = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1.0]])
    found = fit(values, Settings.of("1pl", priors=True))
    exam = FittedExam(Exam(tuple("abcd"), tuple("wxyz"), values), found)
    theta, se = found.theta[0], found.se_theta[0]
    assert exam.interval(0) == pytest.approx((theta - 1.95996 * se, theta + 1.95996 * se), abs=1e-4)
