"""An opened track with the grader that a user selected: which grader answers a question."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from converters.errors import ConversionError
from trecexam.errors import TrackError, TrecexamError
from trecexam.files.track_lock import track_lock
from trecexam.grades.diagnostics import grades_notes
from trecexam.grades.graded_track import GradedTrack, LoadedTrack
from trecexam.grades.open_track import GraderView, OpenTrack
from trecexam.inputs.track_graders import Measures, names_of
from trecexam.results.result import Result
from trecexam.results.text import CHANGES, Note

Noted = TypeVar("Noted", bound=Result)
T = TypeVar("T")


class Selection:
    """An opened track with a selected grader; calls of `Track` are made of this.

    Attributes:
        loaders: the opened track.
        grader: the name of the selected grader; None for the track as a whole.
        folder: paths of the track as the selected grader sees it, else the first.
    """

    def __init__(self, loaders: OpenTrack, grader: str | None = None) -> None:
        """Select a grader."""
        self.loaders = loaders
        self.grader = grader
        self.folder = (loaders.first if grader is None else loaders[grader]).folder

    @property
    def name(self) -> str:
        """The name of the track's folder."""
        return self.folder.root.resolve().name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the graders that answer: the selected one, else all."""
        return tuple(self.loaders) if self.grader is None else (self.grader,)

    @property
    def is_joint(self) -> bool:
        """True for a track with several graders of which none is selected."""
        return len(self.names) > 1

    def loaded(self) -> LoadedTrack:
        """Load the track as the graders see it that answer."""
        return self.loaders.load(names=self.names)

    def loader(
        self,
        applies: Callable[[GradedTrack], bool] = lambda graded: True,
        *,
        documents: bool = False,
        bank_needed: bool = True,
    ) -> GraderView:
        """Return the view of the selected grader, else of the first that can go on and that `applies` to.

        Where `applies` holds for none, it is the first that can go on; where none can, the first of all.

        Args:
            documents: the question is about documents and official judgments: it applies to graders whose
                labels are of documents that runs rank, and is refused for a selected one with other labels.
            bank_needed: False for a question about runs, texts and judgments, which needs no bank.
        """
        path = self.folder.config_path
        if not self.is_joint:
            loader = self.loaders[self.names[0]]
            if documents and not loader.kind.ranks:
                others = ", ".join(name for name, other in self.loaders.items() if other.kind.ranks)
                hint = f": take --grader {others}" if others else ""
                reason = f"the grader {loader.name} labels no documents that runs rank{hint}"
                raise TrecexamError(reason, path=path)
            return loader
        able: dict[str, GradedTrack] = {}
        for name in self.loaders:
            with suppress(TrecexamError, ConversionError):
                able[name] = self.loaders[name].load(bank_needed=bank_needed)
            if name in able and (able[name].of_documents or not documents) and applies(able[name]):
                return self.loaders[name]
        name = next(iter(able), self.names[0])
        if documents and able and not able[name].of_documents:
            unable = "; ".join(f"{name}: {error}" for name, error in self.loaded().unable.items())
            if unable:
                raise TrecexamError(f"no grader that labels documents can go on; {unable}", path=path)
        return self.loaders[name]

    def graded(
        self,
        applies: Callable[[GradedTrack], bool] = lambda graded: True,
        *,
        documents: bool = False,
        bank_needed: bool = True,
    ) -> GradedTrack:
        """Return the current graded track of the grader that `loader` selects."""
        loader = self.loader(applies, documents=documents, bank_needed=bank_needed)
        return loader.load(bank_needed=bank_needed)

    def each(self, call: Callable[[GraderView], T]) -> list[T]:
        """Return what a function returns for each selected grader that can go on; an error if none can."""
        results: list[T] = []
        errors: list[TrecexamError | ConversionError] = []
        for name in self.names:
            try:
                results.append(call(self.loaders[name]))
            except (TrecexamError, ConversionError) as error:
                errors.append(error)
        if not results:
            raise errors[0]
        return results

    def of_measures(self, measures: Measures | None, *, official: bool = False) -> Selection:
        """Select the grader of these measures: the one that the leaderboard has them of.

        Args:
            official: they are computed on the official judgments, and may be any grader's.
        """
        names = (names_of(measures) or ()) if self.is_joint else ()
        loaded = self.loaded() if names else None
        first = next(filter(None, map(loaded.whose, names)), None) if loaded else None
        if loaded is None or first is None:
            return self
        for name in () if official else names:
            if loaded.named(name) == (grader := loaded.first.name, name) and grader != first:
                reason = f"measure '{name}': measures of one grader are expected here: write {first}:{name}"
                raise TrackError(reason, path=self.folder.config_path)
        return Selection(self.loaders, first)

    def grader_note(self, grader: str) -> Note | None:
        """Return the note that this grader answers; None where it is the only one, or was selected."""
        others = ", ".join(name for name in self.loaders if name != grader)
        line = f"shown for the grader {grader}; --grader selects another: {others}"
        return Note(line, CHANGES) if self.is_joint else None

    def with_grader_note(self, result: Noted, grader: str) -> Noted:
        """Return the result with the note on its grader, see `grader_note`."""
        note = self.grader_note(grader)
        return result if note is None else result.with_notes(note)

    def with_grade_notes(self, result: Noted, graded: GradedTrack, *, human: bool = True) -> Noted:
        """Return a result that is made from grades, with the notes on the grades and on its grader."""
        return self.with_grader_note(result.with_notes(*grades_notes(graded, human=human)), graded.name)

    def model_lock(self) -> AbstractContextManager[None]:
        """Return the lock that is held while a model writes what is not a grade."""
        return track_lock(self.folder.writing_lock_path, "calling this track's model")
