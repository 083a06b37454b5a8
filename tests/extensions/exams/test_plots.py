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
from trecexam.extensions.exams.plots import exam_plots, groups_plot, radar_plot, steps_plot
from trecexam.tables.plots.model import Plot

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
    plot = groups_plot(FittedExam(Exam(*names, values, groups=groups), fit(values, settings)), "topic")
    axes = drawn(plot).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"_t{n} (2)" for n in range(10)]
    curves = [line for line in axes.get_lines() if line.get_marker() == "None"]
    assert len({(line.get_color(), line.get_linestyle()) for line in curves}) == 10


def grouped(values: np.ndarray, groups: dict[str, list[int]], grouping: str = "question type") -> FittedExam:
    names = tuple(f"s{n}" for n in range(len(values))), tuple(map(str, range(values.shape[1])))
    return FittedExam(Exam(*names, values, groups={grouping: groups}), fit(values, Settings.of("1pl")))


def test_the_radar_plot_shows_the_share_of_right_responses_per_group(values: np.ndarray) -> None:
    values = values.copy()
    values[3, 5:10] = values[4, 2] = np.nan
    groups = {"what": [0, 1, 2], "how": [5, 6, 7, 8, 9], "why": [2, 11], "other": [20]}
    fitted = grouped(values, groups)
    plot = radar_plot(fitted, "question type")
    assert plot.name == "accuracy_by_question_type"
    assert plot.table.header == ("group", *fitted.exam.examinees)
    assert [row[0] for row in plot.table.rows] == ["what (3)", "how (5)", "why (2)", "other (1)"]
    for row, places in zip(plot.table.rows, groups.values(), strict=True):
        for system, share in enumerate(row[1:]):
            given = [values[system, n] for n in places if not np.isnan(values[system, n])]
            assert share == (pytest.approx(sum(given) / len(given)) if given else None)
    assert plot.table.rows[1][4] is None
    figure = drawn(plot)
    axes = figure.axes[0]
    lines = axes.get_lines()
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    ablest = [fitted.exam.examinees[n] for n in fitted.order]
    assert len(lines) == len(named) == 6
    assert (named[0], named[-1]) == (ablest[0], ablest[-1])
    for name, line in zip(named, lines, strict=True):
        radii = np.asarray(line.get_ydata(), float)
        told = [row[plot.table.header.index(name)] for row in plot.table.rows]
        expected = np.array([*told, told[0]], float)
        assert radii == pytest.approx(expected, nan_ok=True)
    assert "6 of the 25 systems are drawn" in plot.caption


def test_a_few_systems_are_all_drawn_and_two_groups_give_no_radar_plot(values: np.ndarray) -> None:
    few = values[:3]
    plots = exam_plots(grouped(few, {"a": [0, 1], "b": [2], "c": [3, 4]}))
    assert "accuracy_by_question_type" in plots
    assert "information_by_question_type" in plots
    assert "systems are drawn" not in plots["accuracy_by_question_type"].caption
    assert len(drawn(plots["accuracy_by_question_type"]).axes[0].get_lines()) == 3
    assert "accuracy_by_question_type" not in exam_plots(grouped(few, {"a": [0, 1], "b": [2]}))
