"""Plots of an item response model of a track's runs and items."""

from __future__ import annotations

from collections.abc import Callable

from trecexam.extensions.exams.irt.exam import FittedExam
from trecexam.extensions.exams.plots import abilities_plot, curves_plot, information_plot
from trecexam.extensions.exams.rubric import fit_track
from trecexam.line.assessment import Assessment
from trecexam.line.output_files import Feature, FeaturePlot, PlotMeasures
from trecexam.tables.plots.model import Plot


def _of_fit(plot: Callable[[FittedExam], Plot]) -> Callable[[Assessment, PlotMeasures], Plot]:
    return lambda track, plot_measures: plot(fit_track(track))


EXAMS = Feature(
    plots={
        "abilities": FeaturePlot("exam: the runs' abilities with 95% intervals", _of_fit(abilities_plot)),
        "information": FeaturePlot("exam: how much all items tell, by ability", _of_fit(information_plot)),
        "item_curves": FeaturePlot(
            "exam: the chance of covering each item, by ability", _of_fit(curves_plot)
        ),
    }
)
