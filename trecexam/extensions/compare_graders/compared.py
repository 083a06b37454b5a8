"""Loading of the compared graders, each with the track and its grades."""

from __future__ import annotations

import itertools
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
from trecexam.inputs.track_graders import grader_names


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
        TrecexamError, ConversionError: a file or a grader cannot be used.
    """
    compared: dict[str, GradedTrack] = {}
    recordings = (_recorded(loader, Path(path)) for path in recorded)
    for name, track in itertools.chain(_own(loader, graders, is_alone=not recorded), *recordings):
        candidates = (name, *(f"{name}-{number}" for number in range(2, len(compared) + 2)))
        unique = next(candidate for candidate in candidates if candidate not in compared)
        compared[unique] = _without_people(track)
    return compared


def _own(loader: GraderView, graders: Sequence[str], *, is_alone: bool) -> Iterator[tuple[str, GradedTrack]]:
    """Yield the track's graders; a track's only grader has the name of its kind.

    Args:
        is_alone: nothing else is compared, so that the loader's own grader is needed.
    """
    names = grader_names(loader.folder)
    for name in graders or names:
        try:
            track = loader.track[name].load()
        except (TrecexamError, ConversionError):
            if graders or (name == loader.name and is_alone):
                raise
            continue
        is_needed = len(names) > 1 or is_alone or track.counts.ok
        if graders or (is_needed and _same_cells(track, loader.load())):
            yield name if len(names) > 1 else track.config.grader.name, track


def _recorded(loader: GraderView, path: Path) -> Iterator[tuple[str, GradedTrack]]:
    """Yield each model and prompt of a recording."""
    if not path.is_file():
        raise GraderError("no such file of recorded grades", path=path)
    sources = recorded_sources(path)
    for model, prompt in sources:
        settings, name = {"name": "recorded", "recorded": str(path.resolve())}, path.name.partition(".")[0]
        if len(sources) > 1:
            settings, name = {**settings, "model": model, "prompt": prompt}, prompt or model
        config = loader.folder.config.model_copy(update={"grader": GraderSection.model_validate(settings)})
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


def _without_people(track: GradedTrack) -> GradedTrack:
    """Return the track with its grader's ratings alone; a recording's need not be stored."""
    batches = track.grader.grade(missing_cells(track)) if isinstance(track.grader, RecordedGrader) else ()
    codes_of = {
        (cell.text, asked_digest(cell.item)): CODES[answer.status] if answer.rating is None else answer.rating
        for batch in batches
        for cell, answer in batch
    }
    sheets = {}
    for query_id, sheet in track.sheets.items():
        digests = [asked_digest(item) for item in sheet.items]
        codes = sheet.flat().copy()
        cell_indices = np.flatnonzero((codes == MISSING) & sheet.gradable)
        for cell_index, row, column in zip(cell_indices, *sheet.at(cell_indices), strict=True):
            codes[cell_index] = codes_of.get((sheet.texts[row] or "", digests[column]), MISSING)
        sheets[query_id] = replace(sheet, codes=codes.reshape(sheet.codes.shape), overrides=None)
    return replace(track, sheets=sheets)
