"""The rule that keeps an outlier from compressing the axis."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trecexam.tables.plots.limits import end_at_one, keep_within, squeezing


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(0, 1, 40),
        np.random.default_rng(1).normal(size=200),
        [0.0, 0.7, 0.71, 0.72, 0.73, 0.74, 0.75],
        [0.5] * 30,
        [0.5] * 29 + [0.1],
        [*np.linspace(0, 0.1, 15), *np.linspace(0.9, 1, 15)],
        [],
    ],
    ids=("even", "normal", "few runs", "all tied", "but one tied", "two groups", "none"),
)
def test_no_value_is_left_out_if_that_would_show_less(values: list[float]) -> None:
    assert not squeezing(values).any()


@given(st.lists(st.integers(0, 60), max_size=22))
def test_the_fewest_values_that_halve_the_range_are_left_out(numbers: list[int]) -> None:
    """Compared with every choice of that many values."""

    def halved(values: list[int], most: int) -> list[int]:
        for left_out in range(1, most + 1):
            kept = [list(chosen) for chosen in itertools.combinations(values, len(values) - left_out)]
            best = min(kept, key=lambda chosen: max(chosen) - min(chosen))
            if 0 < max(best) - min(best) <= (max(values) - min(values)) / 2:
                return halved(best, most - left_out)
        return values

    inside = halved(sorted(numbers), min(3, math.ceil(len(numbers) / 10)) if len(numbers) >= 8 else 0)
    kept = np.sort(np.array(numbers, int)[~squeezing(numbers)]).tolist()
    assert len(kept) == len(inside)
    assert not kept or kept[-1] - kept[0] == inside[-1] - inside[0]


@pytest.mark.parametrize(("highest", "end"), [(0.4, 0.42), (0.99, 1.0), (1.0, 1.0), (1.01, 1.0605)])
def test_an_axis_of_shares_ends_at_one(highest: float, end: float) -> None:
    def axes() -> Axes:
        return Figure().subplots()

    drawn, kept = axes(), axes()
    drawn.plot([highest], [0], "o")
    drawn.set_xlim(0, 1.05 * highest)
    end_at_one(drawn, "x")
    assert drawn.get_xlim() == pytest.approx((0, end))
    assert not drawn.lines[0].get_clip_on()
    keep_within(kept, "y", [0, highest])
    assert kept.get_ylim()[1] == pytest.approx(min(1.06 * highest, 1) if highest <= 1 else 1.06 * highest)


def test_the_axis_covers_the_kept_values_with_a_margin() -> None:
    axes = Figure().subplots()
    axes.plot([0, 10], [0, 10])
    assert keep_within(axes, "x", [4.0, np.nan, 6.0]) == pytest.approx((3.88, 6.12))
    assert axes.get_xlim() == pytest.approx((3.88, 6.12))
    assert axes.get_ylim()[0] < 0
