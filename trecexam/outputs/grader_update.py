"""The update of one grader: scan, grade what is missing, write what changed."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import json
import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict
from pathlib import Path

from converters.errors import StoppedError
from converters.lines import stoppable
from trecexam.files.stamps import Rejected, fingerprint
from trecexam.graders.base import identity_json
from trecexam.grades.cell_order import is_useful
from trecexam.grades.diagnostics import coverage_notes, left_out_runs, run_grades_notes
from trecexam.grades.evaluation import official_values, own_leaderboard, rubric_values
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import (
    Progress,
    grade,
    lost_grades,
    refuse_lost_grades,
    stored_grades,
    usage,
    with_new_settings,
)
from trecexam.grades.open_track import GraderView
from trecexam.grades.rejected import left_out, not_computable, rejected_rows
from trecexam.grades.sheets import Counts
from trecexam.inputs.measures import order_cautions, without_vital
from trecexam.outputs.features import features
from trecexam.outputs.outputs import Outputs
from trecexam.outputs.updates import Update
from trecexam.version import __version__

#: Outputs along the way take one part of the time, grading so many.
_LESS_OFTEN = 19


def update_grader(
    loader: GraderView,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    hold: Collection[Path] = (),
    *,
    doing: Callable[[str], None] = lambda stage: None,
    regrade: bool = False,
    written: Callable[[GradedTrack], None] = lambda track: None,
) -> tuple[Update, Callable[[], None]]:
    """Bring a grader's grades and outputs up to date with the folder. Nothing new: nothing is done.

    Args:
        progress: called after each graded batch.
        stop: asked while inputs are read, and after each batch. True while they are read, nothing is done.
            True while cells are graded, it ends the grading, and what was graded is written. True for the
            first time while outputs are written, it ends that after the one in hand: the next update writes
            the others.
        hold: run files that are being written now.
        doing: called with what is done next, in words that follow "finishing".
        regrade: cells that were graded once may be graded again, by a grader that costs, where the store is
            gone or an older one.
        written: called whenever outputs were written, along the way too.

    Returns:
        What was done, and what to call when all outputs of the track are written: the next update has nothing
        to do then.

    Raises:
        TrecexamError, ConversionError: with the reason; outputs are as they were.
    """
    outputs = Outputs(loader.folder)
    doing("reading the inputs")
    loader.track.close_lost_store()
    try:
        with stoppable(stop):
            seen = _fingerprint(loader, hold)
            last = outputs.last(seen)
            # The manifest says whether the environments of answers are mixed.
            same = last is not None and last["environments"] == loader.store.n_environments()
            if last is not None and same and loader.folder.store_path.exists():
                rejected = tuple(Rejected(*row) for row in last["rejected"])
                unchanged = Update(False, 0, last["runs"], Counts(**last["counts"]), rejected, True, ())
                return unchanged, lambda: None
            if not regrade:
                refuse_lost_grades(loader)
            elif lost_grades(loader):
                # Where this is interrupted, the next update continues with it.
                outputs.forget()
            loader.track.open_to_write()
            loader.forget_missing()
            track = with_new_settings(loader, loader.load(hold))
            if stop is not None and stop():
                raise StoppedError
    except StoppedError:
        return Update(True, 0, 0, Counts(), (), complete=False, written=()), lambda: None
    doing("the batch in hand, then all of out/")
    along = _along_the_way(loader, outputs, track, progress, written)
    track, outcome = grade(loader, track, along, stop)
    ungraded = tuple(left_out(track)) if outcome.complete else ()
    rejected = rejected_rows(track, ungraded)
    # Imports numpy's BLAS, whose threads take more time to wait for one another than to multiply.
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"), _not_collected():
        # Where grading was stopped, what it brought is written.
        halt = stop if stop is not None and not stop() else lambda: False
        used = usage(loader)
        all_written = outputs.write(track, rejected, used, halt, doing, complete=outcome.complete)
        written(track)
    complete = outcome.complete and all_written
    doing("what is kept for the next update")
    loader.keep_codes(track)
    notes: list[str] = []
    for feature in features() if complete else ():
        if feature.updated is not None and feature.applies(track):
            changed, said = feature.updated(track)
            notes += said
            if changed:
                outputs.finish(track, rejected, used, complete=True)
                outputs.changed += changed

    def remembered() -> None:
        if complete:
            outputs.remember(
                seen,
                runs=len(track.runs),
                counts=asdict(track.counts),
                rejected=rejected,
                n_stored=stored_grades(loader),
                environments=loader.store.n_environments(),
            )
        with contextlib.suppress(OSError, AttributeError):
            # What was freed goes back to the system (glibc): a daemon may rest for hours.
            ctypes.CDLL(None).malloc_trim(0)

    update = Update(
        True,
        outcome.cells,
        len(track.runs),
        track.counts,
        rejected,
        complete,
        tuple(dict.fromkeys(outputs.changed)),
        outputs.moved,
        outcome.why,
        outcome.cut,
        (
            *without_vital(track.measures, track.bank),
            *run_grades_notes(track),
            *coverage_notes(track, own_leaderboard(track), track.bank.query_ids),
        ),
        (
            *left_out_runs(track),
            *order_cautions(track.runs),
            *track.notes,
            *notes,
        ),
    )
    return update, remembered


def _along_the_way(
    loader: GraderView,
    outputs: Outputs,
    track: GradedTrack,
    progress: Callable[[Progress], None] | None,
    written: Callable[[GradedTrack], None],
) -> Callable[[Progress], None]:
    """Return what tells progress and, where the most useful cells come first, writes outputs now and then.

    Args:
        track: before any of the cells was graded.
        progress: called after each batch.
    """
    every = track.config.cells.outputs_every
    due = time.monotonic() + every if is_useful(track) else math.inf

    def tell(step: Progress) -> None:
        nonlocal due
        if progress is not None:
            progress(step)
        begun = time.monotonic()
        if begun < due or step.graded >= step.cells:
            return
        now = loader.refreshed(track)
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            outputs.write(now, rejected_rows(now), usage(loader), complete=False)
            written(now)
        end = time.monotonic()
        due = end + max(every, _LESS_OFTEN * (end - begun))

    return tell


@contextlib.contextmanager
def _not_collected() -> Iterator[None]:
    """Freeze the garbage collector, which takes 0.3 s of the outputs of 1.8 million grades."""
    if gc.get_freeze_count():
        # Others froze what is theirs, and thawing would be of all.
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def warm_up(loader: GraderView, stop: Callable[[], bool] | None = None, hold: Collection[Path] = ()) -> None:
    """Reads and evaluates the track unchanged, so that the next update has to look at new inputs only.

    Args:
        stop: asked while large files are read; True ends it.

    Raises:
        TrecexamError, ConversionError: it cannot be read.
    """
    loader.track.open_to_write()
    try:
        with stoppable(stop):
            track = loader.load(hold)
            if stop is not None and stop():
                raise StoppedError
    except StoppedError:
        return
    rubric_values(track)
    if track.official is not None and not_computable(track) is None:
        official_values(track, query_ids=set(track.bank.query_ids))


def _fingerprint(loader: GraderView, hold: Collection[Path]) -> str:
    """Return a digest that is equal for two updates exactly if the second has nothing to do."""
    state = [
        __version__,
        loader.config.values(work=True),
        # A file that is being written changes at every look; what counts of it does not.
        fingerprint(loader.stamps(hold)),
        identity_json(loader.grader.identity),
    ]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()
