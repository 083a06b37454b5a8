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
from trecexam.graders.base import (
    Answer,
    Cell,
    Estimate,
    Stopwatch,
    UngradedError,
    identity_digest,
    identity_json,
)
from trecexam.graders.meter import Meter
from trecexam.graders.replies import FIRST, FirstReplies
from trecexam.graders.writing.asking import AnswerFile
from trecexam.graders.writing.base import naming
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
    """Yield the cells of `missing_rows`."""
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
        only: as of `missing_rows`.

    Raises:
        GraderError: the grader cannot go on; what it graded is stored.
    """
    track, section = with_new_settings(view, track), view.folder.section
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
    """Forget unreadable replies after a change of the grader's settings."""
    if not none_is_read(track):
        return track
    ((identity, settings),) = _settings(view).items()
    if recall(view.folder.unread_path).get(identity, settings) == settings:
        return track
    track.grades.forget(track.sheets, UNREAD)
    return view.refreshed(without_codes(track, UNREAD))


def _settings(view: GraderView) -> dict[str, str]:
    """Return the grader's digest -> a digest of its settings that can change an answer."""
    settings = view.config.grader.model_dump(mode="json", exclude=_NO_ANSWER)
    return {identity_digest(view.grader.identity).hex(): identity_digest(settings).hex()}


def forget_errors(view: GraderView) -> int:
    """Drop the grader's answers that `_retried` means, and return their number."""
    try:
        track = view.load()
    except (TrecexamError, ConversionError):
        # Without a bank, there are no cells.
        return 0
    return track.grades.forget(track.sheets, _retried(track))


def _retried(track: GradedTrack) -> tuple[int, ...]:
    """Return the codes of cells to ask about again: errors, and all replies where none can be read."""
    return (*UNREAD, ERROR) if none_is_read(track) else (ERROR,)


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
    meter = _meter(view)
    if replies.are_unread or not total:
        return Graded(0, complete=not total)
    graded, complete, why, cut_before = 0, True, "", grader.cut
    missing = useful_cells(track, only) if is_useful(track) else missing_cells(track, only)
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
    used = {"this_update": meter.used, "total": total}
    return {key: {**each._asdict(), "cost": meter.cost(each)} for key, each in used.items()}


def estimate(view: GraderView, track: GradedTrack, *, retry_errors: bool = False) -> Estimate:
    """Return what it would take to grade all cells without a grade; asks nobody.

    Args:
        retry_errors: as if `forget_errors` had been called.
    """
    if retry_errors:
        track = without_codes(track, _retried(track))
    if _meter(view) is None:
        return Estimate(track.counts.missing)
    return view.grader.estimate(missing_cells(track))


def record(view: GraderView, batch: Sequence[tuple[Cell, Answer]]) -> None:
    """Store a batch of answers in one transaction."""
    store = view.track.store
    items = list(dict.fromkeys(cell.item for cell, _ in batch))
    texts = list(dict.fromkeys(cell.text for cell, _ in batch))
    item_ids = store.add_ids("item", [*map(asked_digest, items)])
    passage_ids = store.add_ids("passage", [*map(passage_digest, texts)])
    item_rows = dict(zip(items, item_ids, strict=True))
    passage_rows = dict(zip(texts, passage_ids, strict=True))
    rows = (GradeRow(item_rows[cell.item], passage_rows[cell.text], *answer) for cell, answer in batch)
    store.add(_grader_id(view), rows, view.grader.environment)


def _grader_id(view: GraderView) -> int:
    identity = view.grader.identity
    return view.track.store.add_grader(identity_digest(identity), identity_json(identity))


def _meter(view: GraderView) -> Meter | None:
    """Return the grader's meter, told what was used before; None where it has none."""
    meter = view.grader.meter
    if meter is not None:
        by_writers = AnswerFile(view.folder.answers_path).spent(view.purse)
        by_graders = view.track.spent_by_graders(view.purse, meter.cost, but=view.grader)
        meter.begin(view.track.usage(view.grader), by_graders.plus(meter.spent(by_writers)))
    return meter


def _note_usage(view: GraderView, meter: Meter | None) -> None:
    if meter is not None:
        used = meter.before.plus(meter.used).less(view.track.usage(view.grader))
        if used.requests:
            view.track.store.add_usage(_grader_id(view), used, view.purse)


# Grades that were lost


def refuse_lost_grades(view: GraderView) -> None:
    """Refuse to grade on a store that has lost grades; call this while the store is unchanged."""
    view.track.close_lost_store()
    lost = lost_grades(view)
    if lost:
        how = "gone" if view.track.store.is_empty() else "an older one"
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
    if grader.meter is not None and view.track.store.is_empty():
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
    row = view.track.store.grader_id(digest)
    return {digest.hex(): 0 if row is None else view.track.store.count(row)}
