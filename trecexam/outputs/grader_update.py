"""Update of one grader: scan inputs, grade missing cells, write changed outputs."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import json
import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from converters.errors import StoppedError
from converters.lines import stoppable
from trecexam.features.leaderboard.board import own_leaderboard
from trecexam.files.stamps import Rejected, fingerprint
from trecexam.graders.base import identity_json
from trecexam.grades.cell_order import is_useful
from trecexam.grades.diagnostics import (
    coverage_notes,
    left_out,
    left_out_runs,
    not_computable,
    rejected_rows,
    run_grades_notes,
)
from trecexam.grades.evaluation import official_values, rubric_values
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
from trecexam.grades.sheets import Counts
from trecexam.inputs.measures import order_cautions, without_vital
from trecexam.outputs.history import MovedRun
from trecexam.outputs.outputs import Outputs
from trecexam.version import __version__

#: Minimum ratio of grading time to time spent on intermediate outputs.
_LESS_OFTEN = 19


@dataclass(frozen=True)
class Update:
    """Result of an update.

    Attributes:
        changed: False where nothing was new and the update wrote nothing.
        graded: cells graded now.
        runs: runs on the leaderboard.
        counts: the pool's cells by outcome.
        rejected: inputs that were rejected.
        complete: False where the update ended before it had requested all cells.
        why: the reason for an early end; "" where a caller stopped the update.
        cautions: warnings that a reader of the leaderboard needs, one per line.
        cut: texts cut at their end to fit the model, if the grader counts cut texts.
        written: output files that changed.
        notes: warnings about accepted inputs, one per line; () where nothing was new.
        moved: runs whose rank or mean changed, as added to out/history.tsv; with several graders, see
            `graders`.
        graders: name -> update of that grader, for tracks with several graders; other fields are sums.
    """

    changed: bool
    graded: int
    runs: int
    counts: Counts
    rejected: tuple[Rejected, ...]
    complete: bool
    written: tuple[Path, ...]
    moved: tuple[MovedRun, ...] = ()
    why: str = ""
    cut: int = 0
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    graders: Mapping[str, Update] = field(default_factory=dict)


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
    """Bring a grader's grades and outputs up to date with the folder; do nothing if nothing is new.

    Args:
        progress, doing, regrade: as in `Track.update`.
        stop: called while inputs are read, after each batch, and before each output. True ends the update:
            grades so far are written, and the next update writes missing outputs.
        hold: run files that are being written now.
        written: called after each write of outputs, intermediate outputs included.

    Returns:
        The update, and a function to call once all outputs of the track are written; after that call, the
        next update has nothing to do.

    Raises:
        TrecexamError, ConversionError: with the reason; outputs stay unchanged.
    """
    outputs = Outputs(loader.folder)
    doing("reading the inputs")
    loader.track.close_lost_store()
    try:
        with stoppable(stop):
            seen = _fingerprint(loader, hold)
            last = outputs.last(seen)
            # The manifest says whether the environments of answers are mixed.
            same = last is not None and last["environments"] == loader.track.store.n_environments()
            if last is not None and same and loader.folder.store_path.exists():
                rejected = tuple(Rejected(*row) for row in last["rejected"])
                unchanged = Update(False, 0, last["runs"], Counts(**last["counts"]), rejected, True, ())
                return unchanged, lambda: None
            if not regrade:
                refuse_lost_grades(loader)
            elif lost_grades(loader):
                # After an interruption, the next update continues here.
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
    # Grades of a stopped grading are written, too.
    halt = stop if stop is not None and not stop() else lambda: False
    # Garbage collection takes 0.3 s while writing outputs of 1.8 million grades.
    others_froze = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        all_written = outputs.write(track, rejected, usage(loader), halt, doing, complete=outcome.complete)
        written(track)
    finally:
        if not others_froze:
            gc.unfreeze()
    complete = outcome.complete and all_written
    doing("what is kept for the next update")
    loader.keep_codes(track)

    def remembered() -> None:
        if complete:
            outputs.remember(
                seen,
                runs=len(track.runs),
                counts=asdict(track.counts),
                rejected=rejected,
                n_stored=stored_grades(loader),
                environments=loader.track.store.n_environments(),
            )
        with contextlib.suppress(OSError, AttributeError):
            # Return freed memory to the system (glibc): a daemon may be idle for hours.
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
            *outputs.notes,
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
    """Return a progress callback; write intermediate outputs if the most useful cells come first."""
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
        outputs.write(now, rejected_rows(now), usage(loader), complete=False)
        written(now)
        end = time.monotonic()
        due = end + max(every, _LESS_OFTEN * (end - begun))

    return tell


def warm_up(loader: GraderView, stop: Callable[[], bool] | None = None, hold: Collection[Path] = ()) -> None:
    """Read and evaluate the unchanged track, so that the next update reads new inputs only.

    Args:
        stop: called while large files are read; True ends the reading.

    Raises:
        TrecexamError, ConversionError: the track cannot be read.
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
    """Return a digest of everything that an update depends on; equal digests mean nothing to do."""
    state = [
        __version__,
        loader.config.values(work=True),
        # A file that is being written changes with every stat; its counted part does not.
        fingerprint(loader.stamps(hold)),
        identity_json(loader.grader.identity),
    ]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()
