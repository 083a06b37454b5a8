"""One update of all graders of a track: one after the other, and what is of all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from converters.errors import ConversionError
from trecexam.errors import LackingError, LockedError, StoreError, TrecexamError, cannot_go_on
from trecexam.line.assessment import Assessment
from trecexam.line.grading import Graded, Progress
from trecexam.line.loaded_track import TrackLoaders
from trecexam.line.lost_grades import refuse_lost_grades
from trecexam.line.missing_banks import write_missing_banks
from trecexam.line.rejected import merge_rejected
from trecexam.line.sheets import Counts
from trecexam.outputs.earlier_files import remove_gone, remove_waiting, stale_files
from trecexam.outputs.joint import JointOutputs
from trecexam.outputs.update import Updated, updated
from trecexam.outputs.updates import Update
from trecexam.tables.notes import each_once, of_grader


def update_all(
    loaders: TrackLoaders,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
    hold: Collection[Path] = (),
    *,
    only: str | None = None,
    doing: Callable[[str], None] = lambda stage: None,
    regrade: bool = False,
) -> Update:
    """Brings grades and outputs of all graders up to date, in the order of trecexam.toml.

    First it has the test banks written that are missing and whose graders say how. A grader that cannot go on
    (no bank, no model, a server that is gone) ends its own part alone; where a person has to give what is
    missing, that is a note.

    Args:
        progress, stop, hold, doing, regrade: as in `trecexam.outputs.update.updated`. A stop ends
            all of them.
        only: the grader that is meant; what is of all graders is brought up to date, too. None for all.

    Raises:
        StoreError, LockedError: as with one grader.
        TrecexamError, ConversionError: with the reason, if no grader can go on.
    """
    remove_gone(loaders.folder, tuple(loaders))
    names = tuple(loaders) if only is None else (only,)
    # All of them first: other graders ask about the queries that have items.
    banks = write_missing_banks(loaders, names, progress, stop, hold, doing)
    several = len(loaders) > 1
    tracks: dict[str, Assessment] = {}
    errors = dict(banks.errors)
    done: dict[str, Updated] = {}
    joint = JointOutputs(loaders)
    for name in names:
        if several and stop is not None and stop():
            break
        if name in errors:
            continue

        def named(step: Progress, name: str = name) -> None:
            if progress is not None:
                progress(step._replace(grader=name) if several else step)

        def at(stage: str, name: str = name) -> None:
            doing(f"{stage} ({name})" if several else stage)

        def written(track: Assessment, name: str = name) -> None:
            if several:
                tracks[name] = track
                loaded = loaders.load(hold, updated=tracks, unable=errors)
                # Runs that arrive meanwhile are of the next update, as of the graders that are done.
                tracks.update(loaded.assessments)
                joint.write_leaderboard(loaded)

        try:
            done[name] = updated(loaders[name], named, stop, hold, doing=at, written=written, regrade=regrade)
        except (StoreError, LockedError):
            raise
        except (TrecexamError, ConversionError) as error:
            errors[name] = error
    if errors and len(errors) == len(names):
        raise next(iter(errors.values()))
    if not several:
        (each,) = done.values()
        each.remember()
        return replace(each.update, notes=(*banks.notes, *each.update.notes))
    stopped = stop is not None and stop()
    reasons = {name: str(error) for name, error in errors.items()}
    files: list[str] = []
    removed: list[str] = []
    changed = any(each.update.changed for each in done.values()) or not joint.is_current(reasons)
    if changed and (done or not stopped):
        doing("what is of all graders")
        rejected = {name: each.update.rejected for name, each in done.items()}
        track = loaders.load(hold, updated=tracks, unable=errors)
        removed = remove_waiting(loaders.folder, track.unable)
        files = joint.write(track, rejected, lambda: stopped)
    for each in done.values():
        each.remember()
    if not stopped and changed:
        joint.remember(reasons)
    summed = _summed(loaders, done, errors, files, changed=changed, stopped=stopped)
    return replace(summed, notes=(*banks.notes, *summed.notes, *removed))


def grade_all(
    loaders: TrackLoaders,
    progress: Callable[[Progress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Graded:
    """Grades what has no grade yet, of all graders that can go on, and writes nothing to out/.

    Raises:
        StoreError: as with one grader.
        TrecexamError, ConversionError: with the reason, if no grader can go on.
    """
    done: dict[str, Graded] = {}
    errors: dict[str, TrecexamError | ConversionError] = {}
    for name in loaders:
        if stop is not None and stop():
            break

        def named(step: Progress, name: str = name) -> None:
            if progress is not None:
                progress(step._replace(grader=name))

        try:
            loader = loaders[name]
            refuse_lost_grades(loader)
            loader.open_to_write()
            done[name] = loader.grade(loader.load(), named, stop)[1]
        except StoreError:
            raise
        except (TrecexamError, ConversionError) as error:
            errors[name] = error
    if not done and errors:
        raise next(iter(errors.values()))
    why = [f"{name} ended early: {each.why}" for name, each in done.items() if each.why]
    return Graded(
        sum(each.cells for each in done.values()),
        len(done) == len(loaders) and all(each.complete for each in done.values()),
        "; ".join([*why, *(cannot_go_on(name, error) for name, error in errors.items())]),
        sum(each.cut for each in done.values()),
    )


def _summed(
    loaders: TrackLoaders,
    done: Mapping[str, Updated],
    errors: Mapping[str, TrecexamError | ConversionError],
    files: list[str],
    *,
    changed: bool,
    stopped: bool,
) -> Update:
    """What all graders' updates did together."""
    updates = {name: each.update for name, each in done.items()}
    counts = Counts(
        **{
            field.name: sum(getattr(each.counts, field.name) for each in updates.values())
            for field in fields(Counts)
        }
    )
    why = [f"{name} ended early: {each.why}" for name, each in updates.items() if each.why]
    # A grader that waits for a bank or a model has not failed.
    lacking = {name: error for name, error in errors.items() if isinstance(error, LackingError)}
    failed = {name: error for name, error in errors.items() if name not in lacking}
    stale = stale_files(loaders.folder, failed)
    why += [
        "; ".join((cannot_go_on(name, error), *filter(None, [stale.get(name)])))
        for name, error in failed.items()
    ]
    out = loaders.folder.shared_out
    written = (path for each in updates.values() for path in each.written)
    return Update(
        changed=changed,
        graded=sum(each.graded for each in updates.values()),
        runs=max((each.runs for each in updates.values()), default=0),
        counts=counts,
        rejected=merge_rejected(loaders.folder, {name: each.rejected for name, each in updates.items()}),
        complete=not stopped and not failed and all(each.complete for each in updates.values()),
        written=tuple(dict.fromkeys((*written, *(out / name for name in files)))),
        why="; ".join(why),
        cut=sum(each.cut for each in updates.values()),
        cautions=tuple(each_once({name: each.cautions for name, each in updates.items()}, of_grader)),
        notes=(
            *each_once({name: each.notes for name, each in updates.items()}, of_grader),
            *(cannot_go_on(name, error) for name, error in lacking.items()),
            *_places(tuple(loaders), lacking),
        ),
        graders=updates,
    )


def _places(names: Sequence[str], lacking: Collection[str]) -> Iterator[str]:
    """Whose the files are that have the same name for each grader."""
    first, *other_names = names
    folders = ", ".join(f"{name}: out/{name}/" for name in other_names if name not in lacking)
    if first not in lacking:
        yield f"out/rubric.qrels and the other files directly in out/ are of {first}; {folders}".rstrip("; ")
    else:
        yield f"each grader has its files in a folder; {folders}"
