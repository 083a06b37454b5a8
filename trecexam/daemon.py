"""The watch-folder daemon: something changed -> scan -> grade what is missing -> write what changed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path

from converters.errors import ConversionError
from trecexam.config import CONFIG_NAME
from trecexam.errors import TrecexamError
from trecexam.files.stamps import Rejected, Stamp, stamp
from trecexam.files.track_lock import track_lock
from trecexam.folder import TrackFolder, refuse_code, settings_caution
from trecexam.grades.grading import Progress
from trecexam.grades.open_track import OpenTrack
from trecexam.inputs.inputs import lost_in_words
from trecexam.inputs.track_graders import usable_folders
from trecexam.outputs.grader_update import Update, warm_up
from trecexam.outputs.update import update
from trecexam.results.text import plural, shorten_list
from trecexam.watching.events import Hints, Wake, watching
from trecexam.watching.settle import Settler

#: Seconds until an update that failed is tried again though nothing changed (a full disk may be mended).
RETRY = 60.0


@dataclass(eq=False)
class Daemon:
    """Keeps one track's outputs up to date until it is told to stop.

    Attributes:
        root: the track folder.
        log: takes one line for each thing worth saying.
        poll: True to look every few seconds only, without the operating system's file events.
        settle: seconds a file must be still; None for the track's setting.
        progress, regrade: as of `trecexam.outputs.update.update`; `regrade` for the first update done.
        grader: the only grader that grades; None for all.
        look_ended: called after each look with why it cannot go on, or ended early; "" where all is done.
        updates: how many updates found something to do.
        doing: the stage, in words that follow "finishing"; "" while waiting. Safe in a signal handler.
    """

    root: Path
    _: KW_ONLY
    log: Callable[[str], None]
    poll: bool = False
    settle: float | None = None
    progress: Callable[[Progress], None] | None = None
    regrade: bool = False
    grader: str | None = None
    look_ended: Callable[[str], None] = lambda reason: None
    updates: int = field(default=0, init=False)
    doing: str = field(default="", init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _wake: Wake = field(default_factory=Wake, init=False)
    _loaders: OpenTrack | None = field(default=None, init=False)
    _config_stamp: object = field(default=None, init=False)
    _settler: Settler | None = field(default=None, init=False)
    _reported: frozenset[Rejected] = field(default=frozenset(), init=False)
    _noted: frozenset[str] = field(default=frozenset(), init=False)
    _failure: tuple[object, float] | None = field(default=None, init=False)
    _why: str = field(default="", init=False)
    _warm: bool = field(default=False, init=False)

    def stop(self) -> None:
        """Ask the daemon to finish its batch, write the outputs and return. Safe in a signal handler."""
        self._stop.set()
        self._wake.set()

    def look(self) -> None:
        """Ask the daemon to look at the folder now. Safe in another thread."""
        self._wake.set()

    def run(self) -> None:
        """Watch until `stop` is called.

        Raises:
            LockedError: another process grades this track.
            TrecexamError: the folder is no track, or its settings are wrong at the start.
        """
        folder = TrackFolder.open(self.root)
        with track_lock(folder.lock_path):
            folder.runs.mkdir(parents=True, exist_ok=True)
            hints = Hints(self._wake)
            events = watching(self.root, folder.runs, hints, self.log)
            with contextlib.nullcontext() if self.poll else events:
                self._loop(folder, hints)

    def _loop(self, folder: TrackFolder, hints: Hints) -> None:
        self._open()
        self.log(f"watching {folder.runs}")
        try:
            while not self._stop.is_set():
                self._wake.clear()
                wait = self._step(hints)
                if self._stop.is_set():
                    break
                self._wake.wait(wait)
        finally:
            if self._loaders is not None:
                self._loaders.close()

    def _open(self) -> None:
        """Take the settings as they are now."""
        # Before it is read: what is written meanwhile is a change still to come.
        written = stamp(self.root / CONFIG_NAME)
        folder = TrackFolder.open(self.root)
        refuse_code(folder.config.grader.metric, folder.root, trusted=folder.trust_code)
        if caution := settings_caution(folder):
            self.log(caution)
        if self._loaders is not None:
            self._loaders.close()
        self._config_stamp = (written, _settings(folder)[1])
        self._loaders, self._warm = OpenTrack(folder), False
        patience = folder.config.watch.settle if self.settle is None else self.settle
        if self._settler is None or self._settler.settle != patience:
            self._settler = Settler(patience)

    def _step(self, hints: Hints) -> float:
        """Look at the folder once; return the seconds until the next look is due."""
        assert self._loaders is not None
        assert self._settler is not None
        poll = self._loaders.folder.config.watch.poll
        try:
            if _settings(self._loaders.folder) != self._config_stamp:
                self._open()
                self.log("settings changed")
            loaders = self._loaders
            # What is told of before the look is there when it is looked at.
            arrived = hints.take()
            stamps = _stamps(loaders)
        except TrecexamError as error:
            self._fail(str(error), error)
            return poll
        waiting = self._settler.unsettled(stamps, arrived, time.monotonic(), time.time())
        runs = loaders.folder.runs
        if any(not path.is_relative_to(runs) for path in waiting):
            # A bank or a passages file is being written: wait for it, then do all at once.
            return min(poll, *waiting.values())
        key = (tuple(sorted(stamps.items())), tuple(sorted(waiting)))
        if self._failure is None or self._failure[0] != key or time.monotonic() > self._failure[1] + RETRY:
            try:
                done = self._update(loaders, tuple(waiting))
                # What could not be had now is tried again, but not at every look.
                self._failure = (key, time.monotonic()) if done.why else None
            except (TrecexamError, ConversionError) as error:
                self._fail(key, error)
            self.doing = ""
        return min([poll, *waiting.values()])

    def _update(self, loaders: OpenTrack, hold: tuple[Path, ...]) -> Update:
        done = update(
            loaders,
            self.progress,
            self._stop.is_set,
            hold,
            only=self.grader,
            doing=partial(setattr, self, "doing"),
            regrade=self.regrade,
        )
        self.regrade = False
        if not (done.changed or self._warm):
            # The first run that is dropped shall not wait for what was there before it.
            for loader in loaders.values():
                # What is in its way was said.
                with contextlib.suppress(TrecexamError, ConversionError):
                    warm_up(loader, self._stop.is_set, hold)
        self._warm = True
        self._report(done)
        self.look_ended(done.why)
        return done

    def _fail(self, key: object, error: Exception) -> None:
        if self._failure is None or self._failure[0] != key:
            self.log(f"cannot go on until this is mended: {error}")
        self._failure = (key, time.monotonic())
        self.look_ended(str(error))

    def _report(self, update: Update) -> None:
        if not update.changed:
            return
        self.updates += 1
        for row in update.rejected:
            if row not in self._reported:
                self.log(f"rejected: {row}")
        notes = (*update.notes, *update.cautions)
        for note in notes:
            if note not in self._noted:
                self.log(f"note: {note}")
        self._reported, self._noted = frozenset(update.rejected), frozenset(notes)
        stuck = update.why and update.why == self._why
        self._why = update.why
        if update.graded or update.written or not (update.complete or stuck):
            for line in describe(update):
                self.log(line)


def _settings(folder: TrackFolder) -> tuple[object, object]:
    """Return another value when trecexam.toml, or a prompt or metric that it names, changes."""
    folders = list(usable_folders(folder).values())
    named_paths = [path for each in folders for path in (each.prompt(), each.metric())]
    return stamp(folder.config_path), tuple(path and stamp(path) for path in named_paths)


def _stamps(loaders: OpenTrack) -> dict[Path, Stamp]:
    """Return the stamps of all input files, of the graders that can say which they look at."""
    stamps: dict[Path, Stamp] = {}
    errors: list[TrecexamError] = []
    for name in loaders:
        try:
            stamps |= loaders[name].stamps()
        except TrecexamError as error:
            errors.append(error)
    if len(errors) == len(loaders):
        raise errors[0]
    return stamps


def describe(update: Update) -> list[str]:
    """Return lines on what an update did: counts and files, and why it ended early."""
    counts = update.counts
    lost = lost_in_words(Counter(row.lost for row in update.rejected))
    parts = [
        plural(update.runs, "run"),
        plural(len(update.graders), "grader") if update.graders else "",
        f"{plural(update.graded, 'cell')} graded" if update.graded else "nothing to grade",
        f"{update.cut:,} texts cut at the end to fit the model" if update.cut else "",
        f"{counts.missing:,} of {counts.cells:,} without a grade" if counts.missing else "",
        *(f"{n:,} {name}" for name in ("unparsed", "refused", "error") if (n := getattr(counts, name))),
        f"{counts.no_text:,} pooled passages without a text" if counts.no_text else "",
        f"rejected: {lost} (out/rejected.tsv)" if lost else "",
        f"{len(update.written)} files written to out/" if update.written else "outputs unchanged",
        _moves(update, ""),
        *(_moves(each, f"{name}:") for name, each in update.graders.items()),
    ]
    lines = ["; ".join(filter(None, parts))]
    if not update.complete:
        # Of several graders it is said who ended early, and who cannot go on at all.
        early = update.why if update.graders else f"ended early: {update.why}"
        lines.append(early if update.why else "stopped before the end; the next `trecexam watch` goes on")
    return lines


def _moves(update: Update, prefix: str) -> str:
    """Name the runs that moved, and the measure that ranks them; the first leaderboard moves none."""
    moved = update.moved
    is_first = len(moved) >= update.runs and all(row.rank_before is None for row in moved)
    if not moved or is_first:
        return ""
    names = shorten_list([row.summary for row in moved], quote="")
    return f"moved by {prefix}{moved[0].measure}: {names}"
