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
from trecexam.line.assessment import Assessment
from trecexam.line.cell_order import is_useful, missing_rows, useful_cells
from trecexam.line.diagnostics import none_is_read
from trecexam.line.sheets import CODES, ERROR, MISSING, UNREAD
from trecexam.line.store import GradeRow, GradeStore


class Graded(NamedTuple):
    """Cells graded, whether all were asked for, and why not ("" where it was stopped).

    `cut` counts the texts that were too long for the model, as far as the grader counts them.
    """

    cells: int
    complete: bool = True
    why: str = ""
    cut: int = 0


class Progress(NamedTuple):
    """How far grading is. `cells` is what this update has to grade; `grader` whose, of several.

    `what` is counted, where it is not cells. `loading` names the model that is loaded before the first cell.
    """

    graded: int
    cells: int
    grader: str = ""
    what: str = ""
    loading: str = ""


def missing_cells(track: Assessment, only: Mapping[str, Collection[str]] | None = None) -> Iterator[Cell]:
    """Every cell that has a text and no grade of any kind, passage by passage; equal cells once.

    Args:
        only: query_id -> the doc_ids whose cells are meant; None for all.
    """
    for row in missing_rows(track, only):
        for column in row.columns.tolist():
            yield row.cell(track, column)


def without_errors(track: Assessment) -> Assessment:
    """Forget answers that are errors; where no reply can be read, all replies."""
    return without_codes(track, (*UNREAD, ERROR) if none_is_read(track) else (ERROR,))


def without_codes(track: Assessment, forgotten: Sequence[int]) -> Assessment:
    """Forget the grades with these codes."""
    sheets = {
        query_id: replace(
            sheet, codes=np.where(np.isin(sheet.codes, forgotten), np.int8(MISSING), sheet.codes)
        )
        for query_id, sheet in track.sheets.items()
    }
    return replace(track, sheets=sheets)


def count_missing(track: Assessment, only: Mapping[str, Collection[str]]) -> int:
    """How many cells of these passages the grader would be asked about: equal ones once."""
    return sum(len(row.columns) for row in missing_rows(track, only))


def with_recorded_answers(track: Assessment) -> Assessment:
    """The track with what its grader says now of cells without a grade, which is stored nowhere.

    For graders that run no model: what they say is recorded already.

    Raises:
        GraderError, ConversionError: the recording cannot be read.
    """
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
        purse: str = "grader",
        beside: Callable[[], Iterable[Grader]] = tuple,
        by_writers: Callable[[], Usage] = Usage,
    ) -> None:
        self.grader = grader
        self._store = store
        self._purse, self._beside, self._by_writers = purse, beside, by_writers
        self._used = Usage()

    def run(
        self,
        track: Assessment,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        only: Mapping[str, Collection[str]] | None = None,
    ) -> Graded:
        """Grades the cells that have no grade yet, committing batch by batch.

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
        replies = FirstReplies(track.counts.ok, track.counts.unparsed) if track.grader.free_text else None
        if replies is not None and replies.are_unread and total:
            return Graded(0, complete=False)
        missing = useful_cells(track, only) if is_useful(track) else missing_cells(track, only)
        return self.run_cells(missing, total, progress, stop, replies)

    def run_cells(
        self,
        missing: Iterable[Cell],
        total: int,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
        replies: FirstReplies | None = None,
    ) -> Graded:
        """As `run`, of these cells, `total` in number.

        Args:
            replies: those that there are; None to ask on, whatever the replies.
        """
        replies = replies or FirstReplies(read=1)
        graded, complete, why = 0, True, ""
        cut_before = self.grader.cut
        self._used = Usage()
        if not total:
            return Graded(0)
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
        """What it used in the last run and in all; None where that is not counted."""
        meter = self.grader.meter
        if meter is None:
            return None
        return {"this_update": meter.as_json(self._used), "total": meter.as_json(self._used_before())}

    def estimate(self, track: Assessment) -> Estimate:
        """What it would take to grade all cells without a grade; asks nobody."""
        return self.estimate_cells(missing_cells(track), track.counts.missing)

    def estimate_cells(self, missing: Iterable[Cell], total: int) -> Estimate:
        """As `estimate`, of these cells, `total` in number."""
        return Estimate(total) if self._meter() is None else self.grader.estimate(missing)

    def _record(self, batch: Sequence[tuple[Cell, Answer]]) -> None:
        """Stores a batch of answers in one transaction."""
        store = self._store()
        items = list(dict.fromkeys(cell.item for cell, _ in batch))
        texts = list(dict.fromkeys(cell.text for cell, _ in batch))
        item_rows = dict(zip(items, store.add_items([asked_digest(i) for i in items]), strict=True))
        passage_rows = dict(zip(texts, store.add_passages([passage_digest(t) for t in texts]), strict=True))
        rows = (GradeRow(item_rows[cell.item], passage_rows[cell.text], *answer) for cell, answer in batch)
        store.add(self._grader_id(), rows, self.grader.environment)

    def _grader_id(self) -> int:
        identity = self.grader.identity
        return self._store().add_grader(identity_digest(identity), identity_json(identity))

    def _used_before(self, grader: Grader | None = None) -> Usage:
        """What a grader (None: this one) used so far, in all."""
        identity = (grader or self.grader).identity
        grader_id = self._store().grader_id(identity_digest(identity))
        return Usage() if grader_id is None else Usage(*self._store().usage(grader_id))

    def _spent_beside(self) -> Spent:
        """What the graders used whose budget is the same one, those of extensions, too."""
        own_digest = identity_digest(self.grader.identity)
        graders_by_digest = {identity_digest(each.identity): each for each in self._beside()}
        spent = (self._spent_by(each) for digest, each in graders_by_digest.items() if digest != own_digest)
        meter = self.grader.meter
        rest = Usage(*self._store().paid(self._purse, {own_digest, *graders_by_digest}))
        return reduce(Spent.plus, spent, Spent() if meter is None else meter.spent(rest))

    def _spent_by(self, grader: Grader) -> Spent:
        meter = grader.meter
        return Spent() if meter is None else meter.spent(self._used_before(grader))

    def spent(self) -> Spent:
        """What it used so far, and the graders whose budget is the same one."""
        return self._spent_by(self.grader).plus(self._spent_beside())

    def _meter(self) -> Meter | None:
        """The grader's, told what was used before; None where it has none."""
        meter = self.grader.meter
        if meter is not None:
            meter.before, meter.used = self._used_before(), Usage()
            meter.beside = self._spent_beside().plus(meter.spent(self._by_writers()))
        return meter

    def _note_usage(self, meter: Meter | None) -> None:
        if meter is not None and meter.used != self._used:
            used = meter.used
            self._store().add_usage(self._grader_id(), used.less(self._used), self._purse)
            self._used = used
