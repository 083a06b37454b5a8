"""The plot of an improvement with many steps."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from trecexam.extensions.exams.irt.improvement import improve
from trecexam.extensions.exams.irt.model import probability
from trecexam.extensions.exams.irt.settings import Settings
from trecexam.extensions.exams.plots import steps_plot

pytestmark = pytest.mark.plots


def test_a_long_legend_is_next_to_the_curves_and_names_the_first_and_the_last() -> None:
    rng = np.random.default_rng(2)
    chance = probability(rng.normal(0, 1, 25), rng.lognormal(0, 0.4, 40), rng.normal(0, 1, 40))
    values = (rng.random(chance.shape) < chance).astype(float)
    found = improve(values, Settings.of("1pl"), steps=14, drop=0.05)
    figure, plot = Figure(layout="constrained"), steps_plot(found)
    plot.draw(figure, plot)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    legend = axes.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    assert len(found.steps) == 15 > len(names)
    assert names[0].startswith("step 0: 40")
    assert names[-1].startswith("step 14: ")
    assert not legend.get_window_extent().overlaps(axes.bbox)
    curves = [line for line in axes.get_lines() if line.get_marker() == "None"]
    assert {line.get_linestyle() for line in curves} == {"-"}
