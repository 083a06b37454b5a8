"""Plots of a fitted exam that depend on the number of systems and groups."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from trecexam.extensions.exams.irt.exam import Exam, FittedExam
from trecexam.extensions.exams.irt.fitting import fit
from trecexam.extensions.exams.irt.improvement import improve
from trecexam.extensions.exams.irt.model import probability
from trecexam.extensions.exams.irt.settings import Settings
from trecexam.extensions.exams.plots import groups_plot, steps_plot
from trecexam.results.result import Plot

pytestmark = pytest.mark.plots


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    rng = np.random.default_rng(2)
    chance = probability(rng.normal(0, 1, 25), rng.lognormal(0, 0.4, 40), rng.normal(0, 1, 40))
    return (rng.random(chance.shape) < chance).astype(float)


def drawn(plot: Plot) -> Figure:
    figure = Figure(layout="constrained")
    plot.draw(figure, plot)
    figure.draw_without_rendering()
    return figure


def test_a_long_legend_is_next_to_the_curves_and_names_the_first_and_the_last(values: np.ndarray) -> None:
    found = improve(values, Settings.of("1pl"), steps=14, drop=0.05)
    axes = drawn(steps_plot(found)).axes[0]
    legend = axes.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    assert len(found.steps) == 15 > len(names)
    assert names[0].startswith("step 0: 40")
    assert names[-1].startswith("step 14: ")
    assert not legend.get_window_extent().overlaps(axes.bbox)
    curves = [line for line in axes.get_lines() if line.get_marker() == "None"]
    assert {line.get_linestyle() for line in curves} == {"-"}


def test_each_of_many_groups_has_a_distinct_line_style(values: np.ndarray) -> None:
    settings = Settings.of("1pl")
    groups = {"topic": {f"_t{n}": [n, n + 10] for n in range(10)}}
    names = tuple(map(str, range(25))), tuple(map(str, range(40)))
    plot = groups_plot(FittedExam(Exam("m", *names, values, groups=groups), fit(values, settings)), "topic")
    axes = drawn(plot).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"_t{n} (2)" for n in range(10)]
    curves = [line for line in axes.get_lines() if line.get_marker() == "None"]
    assert len({(line.get_color(), line.get_linestyle()) for line in curves}) == 10
