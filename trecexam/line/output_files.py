"""What a feature declares of itself: its files in out/, and what it adds to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from trecexam.files.cache import memoized
from trecexam.folder import TrackFolder
from trecexam.line.assessment import Assessment
from trecexam.line.loaded_track import LoadedTrack
from trecexam.tables.plots.model import Plot
from trecexam.tables.result import Result
from trecexam.tables.section import ExtraFiles, ReportPart


@dataclass(frozen=True)
class OutputFiles:
    """Files of out/ that are made together.

    Attributes:
        names: all that there may be: name in out/ -> what is in it, for the reference page of files.
        make: gives the contents of those that apply to a loaded track.
        first: whether they are written before all others are made: what somebody who drops a run waits for.
    """

    names: Mapping[str, str]
    make: Callable[[Assessment], Mapping[str, bytes]]
    first: bool = False

    @property
    def key(self) -> str:
        """The name of the first file, which no other group has."""
        return next(iter(self.names))


@dataclass(frozen=True)
class ExtraOutputs:
    """Files of a grader's items that have scores of their own, in a folder of out/.

    Attributes:
        kind: of these items.
        folder: in out/; it may have one of plots.
        make: gives the files, and what is at the head of the report's page.
    """

    kind: str
    folder: str
    make: Callable[[Assessment], ExtraFiles]


class PlotMeasures(NamedTuple):
    """The measures of a plot, as ir_measures prints them; None for the track's own."""

    measure: str | None = None
    official_measure: str | None = None


@dataclass(frozen=True)
class FeaturePlot:
    """A plot of a track.

    Attributes:
        what: it shows, in a line.
        make: gives it; raises TrecexamError with the reason where there is none, and ValueError for a measure
            that cannot be computed.
        of: the measures that it may be asked of.
        joint: gives it of all graders of a track that has several; None where it is of one of them.
    """

    what: str
    make: Callable[[Assessment, PlotMeasures], Plot]
    of: tuple[str, ...] = ()
    joint: Callable[[LoadedTrack, PlotMeasures], Plot] | None = None


class AfterUpdate(NamedTuple):
    """What a feature did after an update.

    Attributes:
        written: the files that changed.
        notes: what a reader must know, one per line.
    """

    written: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Feature:
    """What a feature has in out/, and its plots.

    Attributes:
        files: beside the report.
        report: gives what it adds to the report of a loaded track; None for nothing.
        plots: all that `trecexam plot` knows, by their names; those in the report are among them.
        extra: files of items that have scores of their own.
        early: its sections stand before those on people's ratings and on holes; else after them.
        of_any_kind: it needs no labels of documents that runs rank, see `Kind.ranks`.
        manifest: gives what it adds to the manifest; it may read files of out/.
        updated: called after each update that is whole: what the feature does then, and says of it.
    """

    files: tuple[OutputFiles, ...] = ()
    report: Callable[[Assessment], Sequence[ReportPart]] | None = None
    plots: Mapping[str, FeaturePlot] = field(default_factory=dict)
    extra: ExtraOutputs | None = None
    manifest: Callable[[TrackFolder], Mapping[str, Any]] | None = None
    updated: Callable[[Assessment], AfterUpdate] | None = None
    early: bool = False
    of_any_kind: bool = False

    def applies(self, track: Assessment) -> bool:
        """Whether a grader of this kind has any of it."""
        return self.of_any_kind or track.kind.ranks


def feature_of_result(name: str, title: str, make: Callable[[Assessment], Result]) -> Feature:
    """A feature that is one answer: out/NAME.tsv, and a section of the report and of the live page.

    Args:
        title: of the section.
        make: gives the answer.
    """
    file, made = f"{name}.tsv", memoized(make)
    return Feature(
        (OutputFiles({file: title}, lambda track: {file: made(track).to_tsv().encode()}),),
        lambda track: (ReportPart(name, made(track), title, files=(file,)),),
    )
