"""A track as its graders see it at a moment: an assessment for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from converters.errors import ConversionError
from trecexam.errors import LackingError, TrackError, TrecexamError, cannot_go_on, did_you_mean
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.graders.meter import Spent, Usage
from trecexam.line.assessment import Assessment
from trecexam.line.loader import TrackLoader, sharing_budget
from trecexam.line.measure_names import Measures, names_of
from trecexam.line.shared_inputs import SharedInputs
from trecexam.line.track_graders import folder_of, grader_names, refuse_two_graders
from trecexam.tables.notes import LOST, Note

T = TypeVar("T")


def has_bank(track: Assessment) -> bool:
    """Return True for a track with a bank: of a question that needs none, such a grader answers first."""
    return len(track.bank) > 0


@dataclass(frozen=True, eq=False)
class LoadedTrack:
    """One finished value, never changed: what one grader says, or what several say.

    Attributes:
        folder: of the track as a whole.
        assessments: by the graders' names, in the order of trecexam.toml; without those of `unable`.
        unable: name -> why a grader cannot go on (no bank, no model); the others do.
    """

    folder: TrackFolder
    assessments: Mapping[str, Assessment]
    unable: Mapping[str, TrecexamError | ConversionError]

    def __getitem__(self, name: str) -> Assessment:
        """What one grader says.

        Raises:
            TrecexamError, ConversionError: why it cannot say anything, or there is no such grader.
        """
        if name in self.unable:
            raise self.unable[name]
        folder_of(self.folder, name)
        return self.assessments[name]

    @property
    def failed(self) -> tuple[str, ...]:
        """Return the graders that cannot be shown, without those that wait for a bank or a model."""
        return tuple(name for name, error in self.unable.items() if not isinstance(error, LackingError))

    @property
    def is_single(self) -> bool:
        """True for one grader: results then have no grader's name."""
        return len(self.assessments) + len(self.unable) == 1

    @property
    def first(self) -> Assessment:
        """The first of those that can be said something of.

        Raises:
            TrecexamError, ConversionError: there is none; why the first cannot go on.
        """
        for error in self.unable.values() if not self.assessments else ():
            raise error
        return next(iter(self.assessments.values()))

    @property
    def unable_notes(self) -> tuple[Note, ...]:
        """Why graders cannot go on, one per line."""
        return tuple(Note(cannot_go_on(name, error), LOST) for name, error in self.unable.items())

    @property
    def of_documents(self) -> Assessment:
        """The first whose labels are of documents that runs rank; the first of all where there is none."""
        return next((each for each in self.assessments.values() if each.of_documents), self.first)

    def by_grader(self, measures: Measures) -> dict[str, list[str]]:
        """Return the measures of each grader, without its name; see `named`."""
        measures_of_grader: dict[str, list[str]] = {}
        for measure in names_of(measures) or ():
            name, measure_name = self.named(measure)
            measures_of_grader.setdefault(name, []).append(measure_name)
        return measures_of_grader

    def named(self, measure: str) -> tuple[str, str]:
        """Whose measure `NAME:MEASURE` is, and which; without a name see `whose`, else the first grader's.

        Raises:
            TrackError: there is no such grader.
        """
        (name, _, rest), whose = measure.partition(":"), self.whose(measure)
        return (name, rest) if name == whose else (whose or self.first.name, measure)

    def whose(self, measure: str) -> str | None:
        """The grader of `NAME:MEASURE`; without a name the first among whose columns it is, None for none.

        Raises:
            TrackError: there is no such grader, or several are named.
        """
        name, colon, rest = measure.partition(":")
        names = (*self.assessments, *self.unable)
        if colon and name in names:
            refuse_two_graders(self.folder, measure, rest)
            return name
        if colon and re.fullmatch(r"[\w-]+", name):
            hint = did_you_mean(name, names, f"there is {', '.join(names)}")
            raise TrackError(
                f"measure '{measure}': no grader '{name}' in this track; {hint}",
                path=self.first.folder.config_path,
            )
        return next((name for name, each in self.assessments.items() if measure in each.columns), None)


class TrackLoaders(Mapping[str, TrackLoader]):
    """A loader for each grader of a track, by name, in the order of trecexam.toml; they share what they read.

    Use it as a context manager: it holds the store open.
    """

    def __init__(
        self,
        folder: TrackFolder,
        grader: Grader | None = None,
        *,
        graders: Mapping[str, Grader] | None = None,
    ) -> None:
        """Makes no grader yet.

        Args:
            folder: of the track as a whole, or as one of its graders sees it.
            grader: in place of the one that its settings name, where there is one.
            graders: in place of those that the settings name, by name.

        Raises:
            TrackError: a grader is given for one that the track does not have, or it is not said for which.
        """
        self.folder = folder
        names = grader_names(folder)
        self.shared = SharedInputs(folder, several=len(names) > 1)
        if grader is not None and len(names) > 1:
            raise TrackError(
                f"this track has several graders ({', '.join(names)}): say which one it is in place of, as "
                f'graders={{"{names[0]}": ...}}',
                path=folder.config_path,
            )
        graders_by_name = {**({} if grader is None else {names[0]: grader}), **(graders or {})}
        for name in graders_by_name:
            folder_of(folder, name)
        self._given = graders_by_name
        self._loaders: dict[str, TrackLoader | None] = dict.fromkeys(names)

    def __enter__(self) -> TrackLoaders:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the store; what was loaded can say no raw answers any more."""
        for loader in self._loaders.values():
            if loader is not None:
                loader.close()
        self.shared.close()

    def __getitem__(self, name: str) -> TrackLoader:
        """The loader of one grader.

        Raises:
            TrackError: there is no such grader.
            ConfigError: its settings do not go together.
        """
        loader = self._loaders.get(name)
        if loader is None:
            folder = folder_of(self.folder, name)
            loader = TrackLoader(folder, self._given.get(name), shared=self.shared, graders=self)
            self._loaders[name] = loader
        return loader

    def spent_by_graders(self, purse: str, cost: Callable[[Usage], float | None]) -> Spent:
        """What graders used of the budget of this section.

        Args:
            cost: gives the price where none of the track's graders has that budget.

        Raises:
            StoreError: the store cannot be read.
        """
        grading = next(sharing_budget(self, purse), None)
        if grading is not None:
            return grading.spent()
        used = Usage(*self.shared.store.paid(purse))
        return Spent(used.tokens_in + used.tokens_out, cost(used))

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaders)

    def __len__(self) -> int:
        return len(self._loaders)

    @property
    def first(self) -> TrackLoader:
        """That of the first grader."""
        return self[next(iter(self))]

    def first_able(self, applies: Callable[[Assessment], bool], *, bank_needed: bool = True) -> TrackLoader:
        """Return the loader of the first grader that can go on and that `applies` to.

        Where it applies to none, the first that can go on; where none can, the first of all.

        Args:
            bank_needed: as of `TrackLoader.load`.
        """
        able: TrackLoader | None = None
        for name in self:
            try:
                track = self[name].load(bank_needed=bank_needed)
            except (TrecexamError, ConversionError):
                continue
            able = able or self[name]
            if applies(track):
                return self[name]
        return able or self.first

    def load(
        self,
        hold: Collection[Path] = (),
        names: Iterable[str] | None = None,
        *,
        updated: Mapping[str, Assessment] = MappingProxyType({}),
        unable: Mapping[str, TrecexamError | ConversionError] = MappingProxyType({}),
    ) -> LoadedTrack:
        """Return the current track; grades nothing.

        Args:
            hold: run files that are being written now.
            names: of the graders; None for all.
            updated: what was loaded already, by grader.
            unable: why graders cannot go on that need not be tried again.
        """
        assessments: dict[str, Assessment] = {}
        errors: dict[str, TrecexamError | ConversionError] = {}
        for name in self if names is None else names:
            try:
                if name in unable:
                    errors[name] = unable[name]
                else:
                    assessments[name] = updated[name] if name in updated else self[name].load(hold)
            except (TrecexamError, ConversionError) as error:
                errors[name] = error
        return LoadedTrack(self.folder, assessments, errors)


def of_each(loaders: TrackLoaders, names: Iterable[str], ask: Callable[[TrackLoader], T]) -> list[T]:
    """Return the answers of the loaders of those of these graders that can go on.

    Raises:
        TrecexamError, ConversionError: none can.
    """
    answers: list[T] = []
    errors: list[TrecexamError | ConversionError] = []
    for name in names:
        try:
            answers.append(ask(loaders[name]))
        except (TrecexamError, ConversionError) as error:
            errors.append(error)
    if not answers:
        raise errors[0]
    return answers
