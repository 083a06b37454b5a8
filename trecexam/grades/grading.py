"""A grader at work: grades into the store batch by batch, what it takes, and grades that were lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from converters.errors import ConversionError
from trecexam.bank.model import asked_digest, passage_digest
from trecexam.errors import StoreError, TrecexamError, quoted
from trecexam.files.kept import read_object, recall, remember
from trecexam.graders import is_standard
from trecexam.graders.base import (
    Answer,
    Cell,
    Estimate,
    Stopwatch,
    UngradedError,
    identity_digest,
    identity_json,
)
from trecexam.graders.meter import MeasuredTime, Meter, Usage, measured
from trecexam.graders.replies import FIRST, FirstReplies
from trecexam.graders.writing.base import WritingGrader, naming
from trecexam.graders.writing.kept_answers import AnswerFile
from trecexam.grades.cell_order import is_useful, missing_rows, useful_cells
from trecexam.grades.diagnostics import none_is_read, nothing_read
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.open_track import GraderView
from trecexam.grades.sheets import CODES, ERROR, MISSING, UNREAD
from trecexam.grades.store import GradeRow

#: Settings of a grader that change no answer.
_NO_ANSWER = {
    *("concurrency", "timeout", "retries", "max_batch_tokens", "requests_per_minute", "tokens_per_minute"),
    *("price_in", "price_out", "budget", "budget_tokens"),
}


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


def grade(
    view: GraderView,
    track: GradedTrack,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    only: Mapping[str, Collection[str]] | None = None,
) -> tuple[GradedTrack, Graded]:
    """Grade the cells that have no grade yet, committing batch by batch.

    The most useful ones come first where `is_useful` says so. Where none of the first replies can be
    read, no more are asked for, see `FirstReplies`.

    Args:
        track: loaded with the store open to write.
        progress: called after each batch.
        stop: asked between batches; when it says True, grading ends after the batch in hand. Requests
            that are on their way to a server get `LAST_ANSWERS` seconds.
        only: query_id -> the doc_ids whose cells are meant; None for all.

    Returns:
        The track with its new grades, and what was done.

    Raises:
        GraderError: the grader cannot go on; what it graded is stored.
    """
    track, section = with_new_settings(view, track), view.folder.section
    if track.counts.missing:
        # Before the first: where the grader fails, grades of this track are old all the same.
        view.track.n_gradings[identity_digest(view.grader.identity)] += 1
    with naming(section):
        outcome = _run(view, track, progress, stop, only)
    if view.purse == section:
        outcome = outcome._replace(why=outcome.why.replace("[grader]", f"[{section}]"))
    track = view.refreshed(track)
    if none_is_read(track):
        # Where this cannot be written, a change of settings goes unnoticed; --retry-errors asks again.
        with suppress(TrecexamError):
            remember(view.folder.unread_path, _settings(view))
        # A stopped grading goes on with the rest. Recordings do not depend on a setting.
        if view.grader.free_text and (track.counts.unparsed >= FIRST or outcome.complete):
            why = "; ".join(filter(None, (outcome.why, nothing_read(track))))
            outcome = outcome._replace(complete=False, why=why)
    return track, outcome


def with_new_settings(view: GraderView, track: GradedTrack) -> GradedTrack:
    """Forget replies of which none could be read, where the grader's settings changed since."""
    if not none_is_read(track):
        return track
    ((identity, settings),) = _settings(view).items()
    if recall(view.folder.unread_path).get(identity, settings) == settings:
        return track
    track.grades.forget(track.sheets, UNREAD)
    return view.followed(track, without_codes(track, UNREAD))


def _settings(view: GraderView) -> dict[str, str]:
    """Return the grader's digest -> a digest of its settings that can change an answer."""
    settings = view.config.grader.model_dump(mode="json", exclude=_NO_ANSWER)
    return {identity_digest(view.grader.identity).hex(): identity_digest(settings).hex()}


def forget_errors(view: GraderView) -> int:
    """Drop the grader's answers with the status "error", and return their number.

    Where no reply can be read, all replies are dropped, too.
    """
    n_replies, digest = 0, identity_digest(view.grader.identity)
    # Without a bank, there are no cells.
    with suppress(TrecexamError, ConversionError):
        track = view.load()
        n_replies = track.grades.forget(track.sheets, UNREAD) if none_is_read(track) else 0
    view.track.n_gradings[digest] += 1
    return n_replies + view.store.forget(view.store.grader_id(digest), "error")


def _run(
    view: GraderView,
    track: GradedTrack,
    progress: Callable[[Progress], None] | None,
    stop: Callable[[], bool] | None,
    only: Mapping[str, Collection[str]] | None,
) -> Graded:
    """Grade, committing batch by batch; where none of the first replies can be read, ask no more."""
    grader = view.grader
    total = track.counts.missing if only is None else count_missing(track, only)
    # Others than models answer all: a recording is read to its end.
    is_model, counts = grader.free_text, track.counts
    replies = FirstReplies(counts.ok, counts.unparsed) if is_model else FirstReplies(read=1)
    view.used = Usage()
    if replies.are_unread or not total:
        return Graded(0, complete=not total)
    graded, complete, why, cut_before = 0, True, "", grader.cut
    missing = useful_cells(track, only) if is_useful(track) else missing_cells(track, only)
    meter = _meter(view)
    watch = Stopwatch(stop, paid=meter is not None)
    if meter is not None:
        missing = itertools.takewhile(lambda _: not watch.stopped(), missing)
    if progress and (model := grader.model_to_load):
        progress(Progress(0, total, loading=model))
    batches = grader.grade(missing)
    try:
        for batch in batches:
            if batch:
                record(view, batch)
                graded += len(batch)
                replies.add(answer.status for _, answer in batch)
                _note_usage(view, meter)
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
        _note_usage(view, meter)
    return Graded(graded, complete, why, grader.cut - cut_before)


def usage(view: GraderView) -> dict[str, Any] | None:
    """Return what the last grading used, and what all did; None where that is not counted."""
    meter = view.grader.meter
    if meter is None:
        return None
    total = view.track.usage(view.grader)
    return {"this_update": meter.as_json(view.used), "total": meter.as_json(total)}


def estimate(view: GraderView, track: GradedTrack, *, retry_errors: bool = False) -> Estimate:
    """Return what it would take to grade all cells without a grade; asks nobody.

    Args:
        retry_errors: as if errors were forgotten; where no reply can be read, all replies.
    """
    if retry_errors:
        track = without_codes(track, (*UNREAD, ERROR) if none_is_read(track) else (ERROR,))
    if _meter(view) is None:
        return Estimate(track.counts.missing)
    return view.grader.estimate(missing_cells(track))


def record(view: GraderView, batch: Sequence[tuple[Cell, Answer]]) -> None:
    """Store a batch of answers in one transaction."""
    store = view.store
    items = list(dict.fromkeys(cell.item for cell, _ in batch))
    texts = list(dict.fromkeys(cell.text for cell, _ in batch))
    item_ids = store.add_ids("item", [asked_digest(item) for item in items])
    passage_ids = store.add_ids("passage", [passage_digest(text) for text in texts])
    item_rows = dict(zip(items, item_ids, strict=True))
    passage_rows = dict(zip(texts, passage_ids, strict=True))
    rows = (GradeRow(item_rows[cell.item], passage_rows[cell.text], *answer) for cell, answer in batch)
    store.add(_grader_id(view), rows, view.grader.environment)


def _grader_id(view: GraderView) -> int:
    identity = view.grader.identity
    return view.store.add_grader(identity_digest(identity), identity_json(identity))


def _meter(view: GraderView) -> Meter | None:
    """Return the grader's meter, told what was used before; None where it has none."""
    meter = view.grader.meter
    if meter is not None:
        by_writers = AnswerFile(view.folder.answers_path).spent(view.purse)
        by_graders = view.track.spent_by_graders(view.purse, meter.cost, but=view.grader)
        meter.begin(view.track.usage(view.grader), by_graders.plus(meter.spent(by_writers)))
    return meter


def _note_usage(view: GraderView, meter: Meter | None) -> None:
    if meter is not None and meter.used != view.used:
        used = meter.used
        view.store.add_usage(_grader_id(view), used.less(view.used), view.purse)
        view.used = used


# Grades that were lost


def refuse_lost_grades(view: GraderView) -> None:
    """Refuse to grade on a store that has lost grades; call this while the store is unchanged.

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
    remembered = recall(folder.last_update_path).get(folder.grader or "", {}).get("n_stored", {})
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
        is_here = is_builtin and view.config.elsewhere is None
    total = track.counts.missing
    if not is_here or grader.meter is not None or not total:
        return None

    def work(passages: Sequence[list[Cell]]) -> None:
        for _ in grader.grade(list(itertools.chain.from_iterable(passages))):
            pass

    groups = itertools.groupby(missing_cells(track), lambda cell: (cell.query_id, cell.text))
    return measured(work, (list(cells) for _, cells in groups), total, len)
