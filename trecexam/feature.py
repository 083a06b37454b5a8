"""Declaration of a feature: files in out/, sections of the report, plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trecexam.files.cache import memoized
from trecexam.grades.graded_track import GradedTrack
from trecexam.results.page.page import Page
from trecexam.results.result import Plot, Result

#: By name in out/: what is in a file, for the reference page, and the function that makes it. A `Result` is
#: written as the name's ending says, .tsv or .json; None is for a track without the file.
Files = Mapping[str, tuple[str, Callable[[GradedTrack], Result | bytes | None]]]
#: By name: what a plot shows, in a line, and the function that makes it. The function raises TrecexamError
#: with the reason where there is no plot, and ValueError for a measure that cannot be computed.
Plots = dict[str, tuple[str, Callable[..., Plot]]]


@dataclass(frozen=True)
class Feature:
    """Files in out/, sections of the report and the live page, and plots.

    Attributes:
        files: in out/.
        page: adds sections to a page.
        plots: for `trecexam plot` and the report. The function takes a graded track and, as far as they can
            be chosen, the keywords `measure` and `official_measure`: names, or None for the track's own.
        joint_plots: plots of all graders: the function takes a `LoadedTrack`.
        updated: called after each update that is whole; returns the files that it changed, and notes.
        early: its sections stand before those on people's ratings and on holes; else after them.
        of_any_kind: it needs no labels of documents that runs rank, see `Kind.ranks`.
    """

    files: Files = field(default_factory=dict)
    page: Callable[[GradedTrack, Page], None] | None = None
    plots: Plots = field(default_factory=dict)
    joint_plots: Plots = field(default_factory=dict)
    updated: Callable[[GradedTrack], tuple[Iterable[Path], Iterable[str]]] | None = None
    early: bool = False
    of_any_kind: bool = False

    def applies(self, track: GradedTrack) -> bool:
        """Return True where a grader of this kind has any of it."""
        return self.of_any_kind or track.kind.ranks


def feature_of_result(name: str, title: str, make: Callable[[GradedTrack], Result]) -> Feature:
    """Return a feature that is one result: out/NAME.tsv, and a section of the report and of the live page.

    Args:
        title: of the section.
        make: computes the result.
    """
    file, made = f"{name}.tsv", memoized(make)
    return Feature(
        {file: (title, made)},
        lambda track, page: page.add(name, made(track), title=title, files=(file,)),
    )
