"""A grader at work: cells without a grade in, grades into the store batch by batch, and what it took."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from trecexam.bank.model import asked_digest, passage_digest
from trecexam.graders.base import (
    Answer,
    Cell,
    Estimate,
    Grader,
    Stopwatch,
    UngradedError,
    identity_digest,
    identity_json,
)
from trecexam.graders.meter import Meter, Spent, Usage
from trecexam.graders.replies import FirstReplies
from trecexam.grades.cell_order import is_useful, missing_rows, useful_cells
from trecexam.grades.diagnostics import none_is_read
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.sheets import CODES, ERROR, MISSING, UNREAD
from trecexam.grades.store import GradeRow, GradeStore


class Graded(NamedTuple):
    """Cells graded, whether all were asked for, why not ("" where stopped), and texts that were cut."""

    cells: int
    complete: bool = True
    why: str = ""
    cut: int = 0


class Progress(NamedTuple):
    """Progress of grading: cells graded, of all in this update; the grader, of several.

    `what` is counted, where it is not cells. `loading` names the model that is loaded before the first cell.
    """

    graded: int
    cells: int
    grader: str = ""
    what: str = ""
    loading: str = ""


def missing_cells(track: GradedTrack, only: Mapping[str, Collection[str]] | None = None) -> Iterator[Cell]:
    """Yield every cell that has a text and no grade of any kind, passage by passage; equal cells once.

    Args:
        only: query_id -> the doc_ids whose cells are meant; None for all.
    """
    for row in missing_rows(track, only):
        for column in row.columns.tolist():
            yield row.cell(track, column)


def without_errors(track: GradedTrack) -> GradedTrack:
    """Forget answers that are errors; where no reply can be read, all replies."""
    return without_codes(track, (*UNREAD, ERROR) if none_is_read(track) else (ERROR,))


def without_codes(track: GradedTrack, forgotten: Sequence[int]) -> GradedTrack:
    """Forget the grades with these codes."""
    sheets = {
        query_id: replace(
            sheet, codes=np.where(np.isin(sheet.codes, forgotten), np.int8(MISSING), sheet.codes)
        )
        for query_id, sheet in track.sheets.items()
    }
    return replace(track, sheets=sheets)


def count_missing(track: GradedTrack, only: Mapping[str, Collection[str]]) -> int:
    """Count the cells of these passages that the grader would be asked about: equal ones once."""
    return sum(len(row.columns) for row in missing_rows(track, only))


def with_recorded_answers(track: GradedTrack) -> GradedTrack:
    """Return the track with what its recording has of cells without a grade, which is stored nowhere."""
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


class Grading:
    """One grader's work on one track.

    Args:
        store: gives the open store.
        purse: the section whose budget pays.
        beside: gives the track's other graders that it pays for, who know their own prices.
        by_writers: gives what writers used of that budget.
    """

    def __init__(
        self,
        grader: Grader,
        store: Callable[[], GradeStore],
        purse: str,
        beside: Callable[[], Iterable[Grader]],
        by_writers: Callable[[], Usage],
    ) -> None:
        self.grader = grader
        self._store = store
        self._purse, self._beside, self._by_writers = purse, beside, by_writers
        self._used = Usage()

    def run(
        self,
        track: GradedTrack,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        only: Mapping[str, Collection[str]] | None = None,
    ) -> Graded:
        """Grade the cells that have no grade yet, committing batch by batch.

        The most useful ones come first where `is_useful` says so. Where none of the first replies can be
        read, no more are asked for, see `FirstReplies`.

        Args:
            progress: called after each batch.
            stop: asked between batches; when it says True, grading ends after the batch in hand. Requests
                that are on their way to a server get `LAST_ANSWERS` seconds.
            only: query_id -> the doc_ids whose cells are meant; None for all.

        Raises:
            GraderError: the grader cannot go on; what it graded is stored.
        """
        total = track.counts.missing if only is None else count_missing(track, only)
        # Others than models answer all: a recording is read to its end.
        is_model, counts = self.grader.free_text, track.counts
        replies = FirstReplies(counts.ok, counts.unparsed) if is_model else FirstReplies(read=1)
        self._used = Usage()
        if replies.are_unread or not total:
            return Graded(0, complete=not total)
        graded, complete, why, cut_before = 0, True, "", self.grader.cut
        missing = useful_cells(track, only) if is_useful(track) else missing_cells(track, only)
        meter = self._meter()
        watch = Stopwatch(stop, paid=meter is not None)
        if meter is not None:
            missing = takewhile(lambda _: not watch.stopped(), missing)
        if progress and (model := self.grader.model_to_load):
            progress(Progress(0, total, loading=model))
        batches = self.grader.grade(missing)
        try:
            for batch in batches:
                if batch:
                    self._record(batch)
                    graded += len(batch)
                    replies.add(answer.status for _, answer in batch)
                    self._note_usage(meter)
                if progress and batch:
                    progress(Progress(graded, total))
                if replies.are_unread or watch.is_over():
                    break
            complete = not (replies.are_unread or watch.stopped())
        except UngradedError as error:
            complete, why = False, str(error)
        finally:
            close = getattr(batches, "close", None)
            if close:
                close()
            self._note_usage(meter)
        return Graded(graded, complete, why, self.grader.cut - cut_before)

    def usage(self) -> dict[str, Any] | None:
        """Return what the last run used, and what all did; None where that is not counted."""
        meter = self.grader.meter
        if meter is None:
            return None
        return {"this_update": meter.as_json(self._used), "total": meter.as_json(self._used_by(self.grader))}

    def estimate(self, track: GradedTrack) -> Estimate:
        """Return what it would take to grade all cells without a grade; asks nobody."""
        if self._meter() is None:
            return Estimate(track.counts.missing)
        return self.grader.estimate(missing_cells(track))

    def _record(self, batch: Sequence[tuple[Cell, Answer]]) -> None:
        """Store a batch of answers in one transaction."""
        store = self._store()
        items = list(dict.fromkeys(cell.item for cell, _ in batch))
        texts = list(dict.fromkeys(cell.text for cell, _ in batch))
        item_ids = store.add_ids("item", [asked_digest(item) for item in items])
        passage_ids = store.add_ids("passage", [passage_digest(text) for text in texts])
        item_rows = dict(zip(items, item_ids, strict=True))
        passage_rows = dict(zip(texts, passage_ids, strict=True))
        rows = (GradeRow(item_rows[cell.item], passage_rows[cell.text], *answer) for cell, answer in batch)
        store.add(self._grader_id(), rows, self.grader.environment)

    def _grader_id(self) -> int:
        identity = self.grader.identity
        return self._store().add_grader(identity_digest(identity), identity_json(identity))

    def _used_by(self, grader: Grader) -> Usage:
        """Return what a grader used so far, in all."""
        grader_id = self._store().grader_id(identity_digest(grader.identity))
        return Usage() if grader_id is None else Usage(*self._store().usage(grader_id))

    def _spent_by(self, grader: Grader) -> Spent:
        meter = grader.meter
        return Spent() if meter is None else meter.spent(self._used_by(grader))

    def _spent_beside(self) -> Spent:
        """Return what the other graders with the same budget used, those of extensions, too."""
        own_digest = identity_digest(self.grader.identity)
        graders = {identity_digest(each.identity): each for each in self._beside()}
        meter, rest = self.grader.meter, Usage(*self._store().paid(self._purse, {own_digest, *graders}))
        spent = (self._spent_by(each) for digest, each in graders.items() if digest != own_digest)
        return reduce(Spent.plus, spent, Spent() if meter is None else meter.spent(rest))

    def spent(self) -> Spent:
        """Return what the grader used so far, and the graders whose budget is the same one."""
        return self._spent_by(self.grader).plus(self._spent_beside())

    def _meter(self) -> Meter | None:
        """Return the grader's meter, told what was used before; None where it has none."""
        meter = self.grader.meter
        if meter is not None:
            meter.before, meter.used = self._used_by(self.grader), Usage()
            meter.beside = self._spent_beside().plus(meter.spent(self._by_writers()))
        return meter

    def _note_usage(self, meter: Meter | None) -> None:
        if meter is not None and meter.used != self._used:
            used = meter.used
            self._store().add_usage(self._grader_id(), used.less(self._used), self._purse)
            self._used = used
