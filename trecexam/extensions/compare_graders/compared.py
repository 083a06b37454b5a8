"""Loading of the compared graders, each with the track and its grades."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from converters.errors import ConversionError
from trecexam.bank.model import asked_digest
from trecexam.config import GraderSection
from trecexam.config.sections import ScoresSection
from trecexam.errors import GraderError, TrecexamError
from trecexam.graders.recorded import RecordedGrader, recorded_sources
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import missing_cells
from trecexam.grades.open_track import GraderView
from trecexam.grades.sheets import CODES, MISSING
from trecexam.inputs.track_graders import folder_of, grader_names


def compared_graders(
    loader: GraderView, graders: Sequence[str], recorded: Sequence[str | Path]
) -> dict[str, GradedTrack]:
    """Return unique name -> track with the grades of a compared grader; grade nothing.

    People's ratings are left out.

    Args:
        loader: the loader of the track's grader.
        graders: names of graders of the track, in this order.
        recorded: recordings, with a grader for each (model, prompt). Without `graders`, the track's graders
            of the same items and texts as the loader's are compared; a track's only grader is left out if it
            has no grades and there are recordings.

    Raises:
        TrecexamError, ConversionError: a file or a grader cannot be used, or there are no grades.
    """
    for grader in graders:
        folder_of(loader.folder, grader)
    compared: dict[str, GradedTrack] = {}
    for name, track in (
        *(_own(loader, grader) for grader in graders),
        *(() if graders else _default(loader, needed=not recorded)),
        *_recorded(loader, recorded),
    ):
        track = replace(
            track, sheets={q: replace(sheet, overrides=None) for q, sheet in track.sheets.items()}
        )
        if isinstance(track.grader, RecordedGrader):
            track = _with_recorded_answers(track)
        unique, number = name, 1
        while unique in compared:
            number += 1
            unique = f"{name}-{number}"
        compared[unique] = track
    if not any(each.counts.ok for each in compared.values()):
        raise TrecexamError(
            f"no grades of {' and '.join(compared)} yet: run `trecexam watch`, or give recorded grades "
            "with `--recorded FILE`",
            path=loader.folder.root,
        )
    return compared


def _own(loader: GraderView, grader: str) -> tuple[str, GradedTrack]:
    """Return the name and the track of a grader; a track's only grader has the name of its kind."""
    if len(grader_names(loader.folder)) == 1:
        return loader.folder.config.grader.name, loader.load()
    return grader, loader.track[grader].load()


def _default(loader: GraderView, *, needed: bool) -> Iterator[tuple[str, GradedTrack]]:
    """Yield the graders to compare by default.

    Args:
        needed: include a track's only grader even without grades.
    """
    names = grader_names(loader.folder)
    for grader in names:
        try:
            name, track = _own(loader, grader)
        except (TrecexamError, ConversionError):
            if needed if len(names) == 1 else grader == loader.name:
                raise
            continue
        if needed or track.counts.ok if len(names) == 1 else _same_cells(track, loader.load()):
            yield name, track


def _recorded(loader: GraderView, recorded: Sequence[str | Path]) -> Iterator[tuple[str, GradedTrack]]:
    for path in map(Path, recorded):
        if not path.is_file():
            raise GraderError("no such file of recorded grades", path=path)
        sources = recorded_sources(path)
        for model, prompt in sources:
            settings, name = (
                {"name": "recorded", "recorded": str(path.resolve())},
                path.name.partition(".")[0],
            )
            if len(sources) > 1:
                settings, name = {**settings, "model": model, "prompt": prompt}, prompt or model
            config = loader.folder.config.model_copy(
                update={"grader": GraderSection.model_validate(settings)}
            )
            view = GraderView(loader.track, replace(loader.folder, config=config))
            if config.scores.min_rating > view.grader.scale.max_rating:
                # This min_rating is for the scale of the track's grader.
                scores = config.scores.model_dump(exclude_unset=True, exclude={"min_rating"})
                config = config.model_copy(update={"scores": ScoresSection(**scores)})
                view = GraderView(loader.track, replace(loader.folder, config=config), view.grader)
            yield name, view.load()


def _same_cells(track: GradedTrack, other: GradedTrack) -> bool:
    """Return True if both graders grade the same items on the same texts."""
    same = (of_query.doc_ids == other.pool[query].doc_ids for query, of_query in track.pool.items())
    return track.bank.items == other.bank.items and all(same)


def _with_recorded_answers(track: GradedTrack) -> GradedTrack:
    """Return the track with recorded answers for ungraded cells, which are not stored."""
    codes_of: dict[tuple[str, bytes], int] = {}
    for batch in track.grader.grade(missing_cells(track)):
        for cell, answer in batch:
            code = CODES[answer.status] if answer.rating is None else answer.rating
            codes_of[cell.text, asked_digest(cell.item)] = code
    sheets = {}
    for query_id, sheet in track.sheets.items():
        digests = [asked_digest(item) for item in sheet.items]
        codes = sheet.flat().copy()
        cell_indices = np.flatnonzero((codes == MISSING) & sheet.gradable)
        for cell_index, row, column in zip(cell_indices, *sheet.at(cell_indices), strict=True):
            codes[cell_index] = codes_of.get((sheet.texts[row] or "", digests[column]), MISSING)
        sheets[query_id] = replace(sheet, codes=codes.reshape(sheet.codes.shape))
    return replace(track, sheets=sheets)
