"""Plots of a track in the sizes of papers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import signature
from typing import TYPE_CHECKING

from trecexam.errors import TrecexamError, did_you_mean, shortened
from trecexam.feature import Feature
from trecexam.grades.diagnostics import grades_notes
from trecexam.grades.graded_track import GradedTrack, LoadedTrack
from trecexam.inputs.track_graders import MeasureLike, each_once, of_grader
from trecexam.outputs.outputs import features
from trecexam.results.result import Plot
from trecexam.results.table import Table

if TYPE_CHECKING:
    from trecexam.results.plots.paper import PaperFigure


#: Inches. TeX's point is what \the\columnwidth prints.
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
#: Widths in acmart's sigconf, the layout of most papers of the field: one column, and the text block.
COLUMNS = {"single": 3.33, "double": 7.0}
#: Minimum and maximum of a plot's width and height, in inches.
SHORTEST, LONGEST = 1.0, 40.0


def inches(length: str | float) -> float:
    """Return a length in inches; a number is inches already.

    Raises:
        ValueError: not a length, or too small or large for a figure.
    """
    if isinstance(length, str) and length.strip() in COLUMNS:
        return COLUMNS[length.strip()]
    if isinstance(length, str):
        match = re.fullmatch(r"\s*(\d{1,6}(?:\.\d{1,9})?|\.\d{1,9})\s*(in|cm|mm|pt)\s*", length, re.ASCII)
        if match is None:
            raise ValueError(
                f"{shortened(length)}: give a length with its unit, as 3.3in, 8.4cm, 84mm or 241pt, or "
                "single or double"
            )
        value = float(match[1]) * UNITS[match[2]]
    else:
        value = float(length)
    if not SHORTEST <= value <= LONGEST:
        raise ValueError(f"{length}: a plot is {SHORTEST:g}in to {LONGEST:g}in wide and high")
    return value


#: Range of font sizes in points: those of a paper's captions or a little smaller.
FONT_SIZE, LEAST, MOST = 8.0, 3.0, 40.0


def track_plots() -> dict[str, Feature]:
    """Return plot name -> the feature that declares the plot."""
    return {name: each for each in features() for name in (*each.plots, *each.joint_plots)}


def declared_plot(name: str) -> tuple[Feature, str, Callable[..., Plot]]:
    """Return the feature that declares a plot, what the plot shows, and the function that makes it.

    Raises:
        TrecexamError: unknown plot; the message names the nearest and all plots.
    """
    plots = track_plots()
    if not name:
        raise TrecexamError(f"which plot? There are {', '.join(plots)}")
    if name not in plots:
        guess = did_you_mean(name, plots, before="; ") or ";"
        raise TrecexamError(f"no plot '{name}'{guess} there are {', '.join(plots)}")
    return plots[name], *{**plots[name].plots, **plots[name].joint_plots}[name]


def choices(make: Callable[..., Plot]) -> tuple[str, ...]:
    """Return the measures to choose for a plot: the parameters of its function after the track."""
    return tuple(signature(make).parameters)[1:]


def plots_table() -> Table:
    """Return a row per plot: name, content, and the measures to choose."""
    declared = {name: declared_plot(name) for name in track_plots()}
    rows = ((name, what, ", ".join(choices(make))) for name, (_, what, make) in declared.items())
    return Table(("plot", "what", "of"), tuple(rows))


def is_joint(name: str) -> bool:
    """Return True if the plot shows all graders of a track."""
    return name in declared_plot(name)[0].joint_plots


def has_plot(track: GradedTrack, name: str) -> bool:
    """Return True if a grader has this plot."""
    feature, _, make = declared_plot(name)
    return feature.applies(track) and ("official_measure" not in choices(make) or track.of_documents)


def plot(
    track: GradedTrack | LoadedTrack,
    name: str,
    *,
    measure: MeasureLike | None = None,
    official_measure: MeasureLike | None = None,
    width: str | float | None = "single",
    height: str | float | None = None,
    font_size: float = FONT_SIZE,
    notes: Sequence[str] = (),
) -> PaperFigure:
    """Draw a plot of one grader or, given a `LoadedTrack`, of all its graders.

    Args:
        notes: notes to add to the plot's own notes.
    """
    _, _, make = declared_plot(name)
    if not LEAST <= font_size <= MOST:
        raise ValueError(f"font size {font_size:g}: give {LEAST:g} to {MOST:g} points")
    across, up = (None if length is None else inches(length) for length in (width, height))
    chosen = {"measure": measure, "official_measure": official_measure}
    chosen = {kind: str(value) for kind, value in chosen.items() if value is not None}
    for kind, value in chosen.items():
        if kind not in choices(make):
            raise TrecexamError(f"plot {name} has no {kind.replace('_', ' ')} to choose; leave out {value}")
    # Imports matplotlib, which no other call needs.
    from trecexam.results.plots.paper import PaperFigure

    if isinstance(track, LoadedTrack) and not track.is_single:
        notes_by_grader = {grader: grades_notes(each) for grader, each in track.graded_tracks.items()}
        track_notes: tuple[str, ...] = (*each_once(notes_by_grader, of_grader), *map(str, track.unable_notes))
    else:
        track_notes = tuple(grades_notes(track.first if isinstance(track, LoadedTrack) else track))
    made = make(track, **chosen)
    return PaperFigure(made, width=across, height=up, letters=font_size, notes=(*track_notes, *notes))
