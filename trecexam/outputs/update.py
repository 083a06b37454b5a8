"""Update of a track: its graders one after the other, then the files of all graders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from converters.errors import ConversionError
from trecexam.errors import LackingError, LockedError, StoreError, TrecexamError, cannot_go_on
from trecexam.folder import TrackFolder
from trecexam.grades import grading
from trecexam.grades.grading import Graded, Progress
from trecexam.grades.open_track import OpenTrack
from trecexam.grades.sheets import Counts
from trecexam.inputs.inputs import merge_rejected
from trecexam.inputs.missing_banks import write_missing_banks
from trecexam.inputs.track_graders import each_once, of_grader
from trecexam.outputs.grader_update import Update, update_grader
from trecexam.outputs.joint_outputs import JointOutputs, move_histories, stale_files

T = TypeVar("T")


def update(
    loaders: OpenTrack,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    hold: Collection[Path] = (),
    *,
    only: str | None = None,
    doing: Callable[[str], None] = lambda stage: None,
    regrade: bool = False,
) -> Update:
    """Bring grades and outputs of a track's graders up to date, in the order of trecexam.toml.

    Missing test banks are written first if their graders have `write_bank`. A grader that cannot continue (no
    bank, no model, unreachable server) does not stop other graders; a note names what a person has to
    provide.

    Args:
        progress, stop, hold, doing, regrade: as in `update_grader`. A stop ends all graders.
        only: name of the selected grader; shared files are updated, too. None for all graders.

    Raises:
        StoreError, LockedError: the store cannot be used.
        TrecexamError, ConversionError: with the reason, if no grader can continue.
    """

    def prompts_done(name: str, done: int, total: int) -> None:
        if progress is not None:
            progress(Progress(done, total, name, "prompts of its bank"))

    move_histories(loaders.folder, tuple(loaders))
    names = tuple(loaders) if only is None else (only,)
    # All banks first: other graders use the queries that have items. Nuggets may come from files that are
    # still being written.
    held = (lambda: True) if hold else stop or (lambda: False)
    banks = write_missing_banks(
        loaders.folder, loaders.files, names, prompts_done, held, doing, loaders.spent_by_graders
    )
    errors = dict(banks.errors)
    several = len(loaders) > 1
    joint = JointOutputs(loaders, hold, errors) if several else None

    def run(name: str, named: Callable[[Progress], None]) -> tuple[Update, Callable[[], None]]:
        def at(stage: str) -> None:
            doing(f"{stage} ({name})" if several else stage)

        written = partial(joint.write_leaderboard, name) if joint else lambda track: None
        return update_grader(loaders[name], named, stop, hold, doing=at, written=written, regrade=regrade)

    done = _run_each(loaders, names, progress, stop, errors, run)
    updates = {name: each for name, (each, _) in done.items()}
    stopped = several and stop is not None and stop()
    total = _add(loaders.folder, updates) if several else updates[names[0]]
    # Waiting for a bank or a model is no failure.
    lacking = {name: error for name, error in errors.items() if isinstance(error, LackingError)}
    failed = {name: error for name, error in errors.items() if name not in lacking}
    stale = stale_files(loaders.folder, failed)
    why = (
        "; ".join(filter(None, (cannot_go_on(name, error), stale.get(name))))
        for name, error in failed.items()
    )
    total = replace(
        total,
        complete=not stopped and not failed and total.complete,
        why="; ".join(filter(None, (total.why, *why))),
        notes=(
            *banks.notes,
            *total.notes,
            *(cannot_go_on(name, error) for name, error in lacking.items()),
            *_places(tuple(loaders), lacking),
        ),
    )
    if joint is not None:
        total = joint.write(total, doing, stopped=stopped)
    for _, remember in done.values():
        remember()
    return total


def grade(
    loaders: OpenTrack,
    names: Sequence[str],
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Graded:
    """Grade missing cells of each grader that can continue; write nothing to out/.

    Raises:
        StoreError, LockedError: the store cannot be used.
        TrecexamError, ConversionError: with the reason, if no grader can continue.
    """
    errors: dict[str, TrecexamError | ConversionError] = {}

    def run(name: str, named: Callable[[Progress], None]) -> Graded:
        loader = loaders[name]
        grading.refuse_lost_grades(loader)
        loader.track.open_to_write()
        return grading.grade(loader, loader.load(), named, stop)[1]

    done = _run_each(loaders, names, progress, stop, errors, run)
    if len(names) == len(done) == 1:
        return done[names[0]]
    why = [f"{name} ended early: {each.why}" for name, each in done.items() if each.why]
    return Graded(
        sum(each.cells for each in done.values()),
        len(done) == len(names) and all(each.complete for each in done.values()),
        "; ".join([*why, *(cannot_go_on(name, error) for name, error in errors.items())]),
        sum(each.cut for each in done.values()),
    )


def _add(folder: TrackFolder, updates: Mapping[str, Update]) -> Update:
    """Sum the updates of several graders; each line begins with the names of its graders.

    Args:
        folder: the track's folder.
        updates: grader -> update.
    """
    every = updates.values()
    counts = {of.name: sum(getattr(each.counts, of.name) for each in every) for of in fields(Counts)}
    return Update(
        changed=any(each.changed for each in every),
        graded=sum(each.graded for each in every),
        runs=max((each.runs for each in every), default=0),
        counts=Counts(**counts),
        rejected=merge_rejected(folder, {name: each.rejected for name, each in updates.items()}),
        complete=all(each.complete for each in every),
        written=tuple(dict.fromkeys(path for each in every for path in each.written)),
        why="; ".join(f"{name} ended early: {each.why}" for name, each in updates.items() if each.why),
        cut=sum(each.cut for each in every),
        cautions=tuple(each_once({name: each.cautions for name, each in updates.items()}, of_grader)),
        notes=tuple(each_once({name: each.notes for name, each in updates.items()}, of_grader)),
        graders=updates,
    )


def _run_each(
    loaders: OpenTrack,
    names: Sequence[str],
    progress: Callable[[Progress], None] | None,
    stop: Callable[[], bool] | None,
    errors: dict[str, TrecexamError | ConversionError],
    run: Callable[[str, Callable[[Progress], None]], T],
) -> dict[str, T]:
    """Run a step for each grader without an error, and record errors of graders that cannot continue.

    Args:
        stop: called before each of several graders; True skips the remaining graders.
        run: the step, called with a grader's name and a progress callback.

    Raises:
        StoreError, LockedError: from a step.
        TrecexamError, ConversionError: the first error, if no grader can continue.
    """
    several, done = len(loaders) > 1, dict[str, T]()
    for name in names:
        if several and stop is not None and stop():
            break

        def named(step: Progress, name: str = name) -> None:
            if progress is not None:
                progress(step._replace(grader=name) if several else step)

        try:
            if name not in errors:
                done[name] = run(name, named)
        except (StoreError, LockedError):
            raise
        except (TrecexamError, ConversionError) as error:
            errors[name] = error
    if errors and len(errors) == len(names):
        raise next(iter(errors.values()))
    return done


def _places(names: Sequence[str], lacking: Mapping[str, Exception]) -> Iterator[str]:
    """Yield a note on which folder holds each grader's files."""
    first, *other_names = names
    folders = ", ".join(f"{name}: out/{name}/" for name in other_names if name not in lacking)
    if other_names and first not in lacking:
        yield f"out/rubric.qrels and the other files directly in out/ are of {first}; {folders}".rstrip("; ")
    elif other_names:
        yield f"each grader has its files in a folder; {folders}"
