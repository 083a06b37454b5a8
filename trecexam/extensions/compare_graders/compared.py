"""Loads the compared graders, each with the track and its grades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from converters.errors import ConversionError
from trecexam.config import GraderSection, ScoresSection
from trecexam.errors import GraderError, TrecexamError
from trecexam.folder import TrackFolder
from trecexam.graders import Grader
from trecexam.graders.recorded import RecordedGrader, recorded_sources
from trecexam.line.assessment import Assessment
from trecexam.line.grading import with_recorded_answers
from trecexam.line.loader import TrackLoader
from trecexam.line.track_graders import folder_of, grader_names
from trecexam.tables.notes import CHANGES, Note

#: The name of one of the track's graders, or a grader.
GraderLike = str | Grader


@dataclass(frozen=True)
class ComparedGrader:
    """A grader, and the track with its grades; people's ratings are left out.

    Attributes:
        name: differs from those of the other graders.
        model, prompt: as people know them; "" where they have no name.
    """

    name: str
    model: str
    prompt: str
    track: Assessment

    @property
    def max_rating(self) -> int:
        """The best rating on its scale."""
        return self.track.grader.scale.max_rating

    def remarks(self) -> Iterator[str]:
        """A note on its cells without a rating, with reasons."""
        counts = self.track.counts
        without = {
            "not graded yet": counts.missing,
            "of passages without a text": counts.no_text_cells,
            "unparsed": counts.unparsed,
            "refused": counts.refused,
            "errors": counts.error,
        }
        if counts.ok < counts.cells:
            reasons = ", ".join(f"{n:,} {reason}" for reason, n in without.items() if n)
            line = (
                f"{self.name}: {counts.cells - counts.ok:,} of {counts.cells:,} cells have no rating "
                f"({reasons}); this command does not grade them"
            )
            yield Note(line, CHANGES)


class _Named(NamedTuple):
    """A grader given by its settings or as an object.

    `own` says that it is the one of this name in trecexam.toml. `if_graded`: it is left out where it has no
    grades.
    """

    name: str
    settings: GraderSection
    grader: Grader | None = None
    own: bool = False
    if_graded: bool = False


def compared_graders(
    loader: TrackLoader, graders: Sequence[GraderLike], recorded: Sequence[str | Path]
) -> tuple[ComparedGrader, ...]:
    """The named graders, in order, with stored grades; grades nothing.

    Args:
        loader: the track's own.
        graders: names of graders of the track, or graders.
        recorded: recordings. Of each (model, prompt) in one comes a grader. Where no `graders` are given,
            those of the track are compared that grade the same items and texts as the loader's; of a track
            with one grader, this one, unless it has no grades and there are recordings.

    Raises:
        TrecexamError, ConversionError: a file or a grader cannot be used, or nobody graded anything.
    """
    compared: list[ComparedGrader] = []
    for named in _distinct(_named(loader, graders, recorded)):
        if named.own:
            track = _of_track(loader, named.name, asked_for=bool(graders))
            if track is None:
                continue
        else:
            try:
                track = _loader(loader, named).load()
            except (TrecexamError, ConversionError):
                if named.if_graded:
                    continue
                raise
        if named.if_graded and not track.counts.ok:
            continue
        track = replace(
            track, sheets={q: replace(sheet, overrides=None) for q, sheet in track.sheets.items()}
        )
        if isinstance(track.grader, RecordedGrader):
            track = with_recorded_answers(track)
        items = [item for sheet in track.sheets.values() for item in sheet.items]
        compared.append(ComparedGrader(named.name, *track.grades.model_and_prompt(items), track))
    if not any(each.track.counts.ok for each in compared):
        names = " and ".join(each.name for each in compared)
        raise TrecexamError(
            f"no grades of {names} yet: run `trecexam watch`, or give recorded grades with `--recorded FILE`",
            path=loader.folder.root,
        )
    return tuple(compared)


def _of_track(loader: TrackLoader, name: str, *, asked_for: bool) -> Assessment | None:
    """What another grader of the track has; None where it was not asked for by name, and asks about other
    things than the loader's, or cannot say anything.
    """
    try:
        track = loader.track[name].load()
    except (TrecexamError, ConversionError):
        if asked_for or name == loader.name:
            raise
        return None
    return track if asked_for or _same_cells(track, loader.load()) else None


def _loader(of: TrackLoader, named: _Named) -> TrackLoader:
    """A loader of the track with this grader; leaves out a min_rating beyond the grader's scale."""
    folder = of.folder
    config = folder.config.model_copy(update={"grader": named.settings})
    loader = TrackLoader(of.track, replace(folder, config=config), named.grader)
    if config.scores.min_rating <= loader.grader.scale.max_rating:
        return loader
    scores = config.scores.model_dump(exclude_unset=True, exclude={"min_rating"})
    config = config.model_copy(update={"scores": ScoresSection(**scores)})
    return TrackLoader(of.track, replace(folder, config=config), loader.grader)


def _named(
    loader: TrackLoader, graders: Sequence[GraderLike], recorded: Sequence[str | Path]
) -> Iterator[_Named]:
    folder = loader.folder
    names = grader_names(folder)
    if not graders and len(names) > 1:
        yield from (_Named(name, folder_of(folder, name).config.grader, own=True) for name in names)
    elif not graders:
        yield _of_own(folder, loader)._replace(if_graded=bool(recorded))
    for grader in graders:
        if not isinstance(grader, str):
            yield _Named(str(grader.identity["grader"]), folder.config.grader, grader)
        elif len(names) == 1 and grader in names:
            yield _of_own(folder, loader)
        else:
            yield _Named(grader, folder_of(folder, grader).config.grader, own=True)
    for path in map(Path, recorded):
        if not path.is_file():
            raise GraderError("no such file of recorded grades", path=path)
        sources = recorded_sources(path)
        for model, prompt in sources:
            settings = GraderSection.model_validate({"name": "recorded", "recorded": str(path.resolve())})
            if len(sources) == 1:
                yield _Named(path.name.partition(".")[0], settings)
            else:
                of_source = settings.model_copy(update={"model": model, "prompt": prompt})
                yield _Named(prompt or model, of_source)


def _same_cells(track: Assessment, other: Assessment) -> bool:
    """Whether both grade the same items on the same texts."""
    same = (of_query.doc_ids == other.pool[query].doc_ids for query, of_query in track.pool.items())
    return track.bank.items == other.bank.items and all(same)


def _of_own(folder: TrackFolder, loader: TrackLoader) -> _Named:
    return _Named(folder.config.grader.name, folder.config.grader, loader.grader)


def _distinct(named: Iterator[_Named]) -> list[_Named]:
    """The graders, with unique names."""
    distinct: dict[str, _Named] = {}
    for each in named:
        name, number = each.name, 1
        while name in distinct:
            number += 1
            name = f"{each.name}-{number}"
        distinct[name] = each._replace(name=name)
    return list(distinct.values())
