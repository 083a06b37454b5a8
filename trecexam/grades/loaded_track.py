"""A loaded track: the graded track of each of its graders, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from converters.errors import ConversionError
from trecexam.errors import LackingError, TrecexamError, cannot_go_on
from trecexam.folder import TrackFolder
from trecexam.grades.graded_track import GradedTrack
from trecexam.inputs.track_graders import Measures, folder_of, names_of, split_measure
from trecexam.results.notes import LOST, Note


def has_bank(track: GradedTrack) -> bool:
    """Return True for a track with a bank: graders with one answer first where none is needed."""
    return len(track.bank) > 0


@dataclass(frozen=True, eq=False)
class LoadedTrack:
    """The graded tracks of one grader or of several; never changed.

    Attributes:
        folder: of the track as a whole.
        graded_tracks: graded tracks by the graders' names, in the order of trecexam.toml; without `unable`.
        unable: name -> why a grader cannot go on (no bank, no model); the others do.
    """

    folder: TrackFolder
    graded_tracks: Mapping[str, GradedTrack]
    unable: Mapping[str, TrecexamError | ConversionError]

    def __getitem__(self, name: str) -> GradedTrack:
        """Return the graded track of one grader, or raise why the grader cannot go on."""
        if name in self.unable:
            raise self.unable[name]
        folder_of(self.folder, name)
        return self.graded_tracks[name]

    @property
    def failed(self) -> tuple[str, ...]:
        """Graders that cannot go on, without those that wait for a bank or a model."""
        return tuple(name for name, error in self.unable.items() if not isinstance(error, LackingError))

    @property
    def is_single(self) -> bool:
        """True for one grader: results then have no grader's name."""
        return len(self.graded_tracks) + len(self.unable) == 1

    @property
    def first(self) -> GradedTrack:
        """The first graded track; where there is none, raises why the first grader cannot go on."""
        if not self.graded_tracks:
            raise next(iter(self.unable.values()))
        return next(iter(self.graded_tracks.values()))

    @property
    def unable_notes(self) -> tuple[Note, ...]:
        """Why graders cannot go on, one per line."""
        return tuple(Note(cannot_go_on(name, error), LOST) for name, error in self.unable.items())

    @property
    def of_documents(self) -> GradedTrack:
        """The first graded track with labels of documents that runs rank, else the first of all."""
        return next((each for each in self.graded_tracks.values() if each.of_documents), self.first)

    def by_grader(self, measures: Measures) -> dict[str, list[str]]:
        """Return the measures of each grader, without its name; see `named`."""
        measures_of_grader: dict[str, list[str]] = {}
        for measure in names_of(measures) or ():
            name, measure_name = self.named(measure)
            measures_of_grader.setdefault(name, []).append(measure_name)
        return measures_of_grader

    def named(self, measure: str) -> tuple[str, str]:
        """Return the grader and the measure of `NAME:MEASURE`; without a name see `whose`, else the first."""
        name, rest = split_measure(self.folder, measure)
        return name or self.whose(measure) or self.first.name, rest

    def whose(self, measure: str) -> str | None:
        """Return the grader of `NAME:MEASURE`; without a name the first with such a column, None for none."""
        name, _ = split_measure(self.folder, measure)
        columns = ((grader, each.columns) for grader, each in self.graded_tracks.items())
        return name or next((grader for grader, names in columns if measure in names), None)
