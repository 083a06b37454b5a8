"""A grader at work: grades into the store batch by batch, what it takes, and grades that were lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import StoreError, quoted
from trecexam.files.kept import read_object, recall
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
from trecexam.graders.kept_vectors import no_kept_vectors
from trecexam.graders.meter import MeasuredTime, Meter, Spent, Usage, measured
from trecexam.graders.registry import is_standard
from trecexam.graders.replies import FirstReplies
from trecexam.graders.writing.base import WritingGrader
from trecexam.graders.writing.kept_answers import AnswerFile
from trecexam.grades.cell_order import is_useful, missing_rows, useful_cells
from trecexam.grades.diagnostics import none_is_read
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.sheets import CODES, ERROR, MISSING, UNREAD
from trecexam.grades.store import GradeRow

if TYPE_CHECKING:
    from trecexam.grades.open_track import GraderView


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
        for column in row.columns:
            yield row.cell(track, column)


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
    """One grader's work on one track."""

    def __init__(self, view: GraderView) -> None:
        self._view = view
        self.grader = view.grader
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
            missing = itertools.takewhile(lambda _: not watch.stopped(), missing)
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

    def estimate(self, track: GradedTrack, *, retry_errors: bool = False) -> Estimate:
        """Return what it would take to grade all cells without a grade; asks nobody.

        Args:
            retry_errors: as if errors were forgotten; where no reply can be read, all replies.
        """
        if retry_errors:
            track = without_codes(track, (*UNREAD, ERROR) if none_is_read(track) else (ERROR,))
        if self._meter() is None:
            return Estimate(track.counts.missing)
        return self.grader.estimate(missing_cells(track))

    def _record(self, batch: Sequence[tuple[Cell, Answer]]) -> None:
        """Store a batch of answers in one transaction."""
        store = self._view.store
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
        return self._view.store.add_grader(identity_digest(identity), identity_json(identity))

    def _used_by(self, grader: Grader) -> Usage:
        """Return what a grader used so far, in all."""
        return Usage(*self._view.store.usage(identity_digest(grader.identity)))

    def _spent_by(self, grader: Grader) -> Spent:
        return Spent() if grader.meter is None else grader.meter.spent(self._used_by(grader))

    def _spent_beside(self) -> Spent:
        """Return what the other graders with the same budget used, those of extensions, too."""
        view, own_digest = self._view, identity_digest(self.grader.identity)
        beside = view.track.gradings(view.purse, but=view.name)
        graders = {identity_digest(each.grader.identity): each.grader for each in beside}
        meter, rest = self.grader.meter, Usage(*view.store.paid(view.purse, {own_digest, *graders}))
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
            by_writers = AnswerFile(self._view.folder.answers_path).spent(self._view.purse)
            meter.beside = self._spent_beside().plus(meter.spent(by_writers))
        return meter

    def _note_usage(self, meter: Meter | None) -> None:
        if meter is not None and meter.used != self._used:
            used = meter.used
            self._view.store.add_usage(self._grader_id(), used.less(self._used), self._view.purse)
            self._used = used


# Grades that were lost


def refuse_lost_grades(view: GraderView) -> None:
    """To be called before grading, on the store unchanged.

    Raises:
        StoreError: cells that graders that cost had graded have no grade any more.
    """
    view.track.close_lost_store()
    lost = lost_grades(view)
    if lost:
        how = "gone" if view.store.is_empty() else "an older one"
        raise StoreError(
            f"the store is {how}, and the {lost:,} cells that were graded once would be graded "
            f"again, which costs: put it back, or `trecexam watch {quoted(view.folder.root)} --once "
            "--regrade`",
            path=view.folder.store_path,
        )


def lost_grades(view: GraderView) -> int:
    """Return how many cells a grader that costs had graded and the store has lost.

    Of an empty store that is by what is in `out/`, of others by how many it had after the last update.
    """
    folder, grader = view.folder, view.grader
    if grader.meter is not None and view.store.is_empty():
        manifest = read_object(folder.manifest_path)
        try:
            graded = sum(manifest["counts"][status] for status in ("ok", *CODES))
            same = identity_json(manifest["grader"]) == identity_json(grader.identity)
            return graded if same else 0
        except (ValueError, KeyError, TypeError):
            return 0
    remembered = recall(folder.last_update_path).get(folder.grader or "", {}).get("stored", {})
    return sum(max(0, remembered.get(digest, 0) - n) for digest, n in stored_grades(view).items())


def stored_grades(view: GraderView) -> dict[str, int]:
    """Return how many grades the store has, by the digest of the grader; {} of a grader without costs."""
    if view.grader.meter is None:
        return {}
    digest = identity_digest(view.grader.identity)
    row = view.store.grader_id(digest)
    return {digest.hex(): 0 if row is None else view.store.count(row)}


# The time that grading takes


def measure_time(view: GraderView, track: GradedTrack | None = None) -> MeasuredTime | None:
    """Grade up to 85 passages as they come, and extrapolate; None where that could cost or runs elsewhere.

    Only graders that come with trecexam, count no tokens and run in this process are timed.

    Args:
        track: what the view loaded; None to load it.

    Raises:
        TrecexamError, ConversionError: the track cannot be read, or the grader cannot run.
    """
    track, grader = track or view.load(), view.grader
    if isinstance(grader, WritingGrader):
        is_here = grader.writer.is_here
    else:
        is_builtin = view.is_own and is_standard(view.config.grader.name)
        is_here = is_builtin and view.config.ray.address is None
    total = track.counts.missing
    if not is_here or grader.meter is not None or not total:
        return None

    def grade(passages: Sequence[list[Cell]]) -> None:
        with no_kept_vectors():
            for _ in grader.grade(list(itertools.chain.from_iterable(passages))):
                pass

    groups = itertools.groupby(missing_cells(track), lambda cell: (cell.query_id, cell.text))
    return measured(grade, (list(cells) for _, cells in groups), total, len)
