"""Plots of an item response model of a track's runs and items."""

from __future__ import annotations

from collections.abc import Callable

from trecexam.extension import named
from trecexam.feature import Feature
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.result import Plot

_EXAMS = "trecexam.extensions.exams"


def _of_fit(plot: str) -> Callable[[GradedTrack], Plot]:
    """Return a function that fits the track and plots the fit; updates import neither."""

    def make(track: GradedTrack) -> Plot:
        fit = named(f"{_EXAMS}.rubric:fit_track")(track)
        made: Plot = named(f"{_EXAMS}.plots:{plot}")(fit)
        return made

    return make


EXAMS = Feature(
    plots={
        "abilities": ("exam: the runs' abilities with 95% intervals", _of_fit("abilities_plot")),
        "information": ("exam: how much all items tell, by ability", _of_fit("information_plot")),
        "item_curves": ("exam: the chance of covering each item, by ability", _of_fit("curves_plot")),
    }
)
