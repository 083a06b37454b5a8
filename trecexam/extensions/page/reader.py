"""The process behind `LiveTrack`: reads a track repeatedly, reports changes, and answers from what it read.

It is a separate process, since reading a track with a million grades takes seconds, in which no page could be
answered. One thread reads; another answers meanwhile from the last read track. The store is opened read-only.
"""

from __future__ import annotations

import pickle
import queue
import threading
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from converters.errors import ConversionError
from trecexam.errors import TrecexamError
from trecexam.extensions.page.gather import view_of_track
from trecexam.extensions.page.view import View
from trecexam.features.leaderboard.board import track_leaderboard
from trecexam.files.stamps import Stamp, stamp
from trecexam.files.track_lock import holder
from trecexam.folder import TrackFolder
from trecexam.grades.graded_track import LoadedTrack
from trecexam.grades.open_track import GraderView, OpenTrack
from trecexam.inputs.track_graders import folder_of, grader_names
from trecexam.watching.settle import Settler

#: Seconds between two looks at the folder.
EVERY = 1.0
#: While the store grows, wait this multiple of the last view's time before the next view.
REST = 4.0
#: Seconds before an unreadable track is read again without changes.
RETRY = 5.0


class Look(NamedTuple):
    """Message to the reader to check for changes now; number 0 needs no answer."""

    number: int


class Call(NamedTuple):
    """Message to the reader to call a function with the loaded track and these arguments.

    Args:
        grader: name of the grader whose view of the track is used.
    """

    number: int
    function: Callable[..., Any]
    args: tuple[Any, ...]
    grader: str


class Loaded(NamedTuple):
    """The pickled views of all graders, the first grader's first."""

    views: bytes


class Trouble(NamedTuple):
    """The reason why the track cannot be read, or ""; the last view stays valid."""

    reason: str


class Work(NamedTuple):
    """Progress of grading, and the process that grades."""

    graded: int
    cells: int
    watched_by: int | None


class Returned(NamedTuple):
    """The pickled result or exception of a call."""

    number: int
    value: bytes
    failed: bool


class Reader:
    """Reader of a changing track.

    Args:
        say: receives changes.
    """

    def __init__(self, root: Path, say: Callable[[Any], None]) -> None:
        self._root = root
        self._say = say
        self._loaders: OpenTrack | None = None
        self._track: LoadedTrack | None = None
        self._settings: object = None
        self._settler = Settler(0)
        self._seen: object = None
        self._changes: object = None
        self._store: object = None
        self._rest_until = 0.0
        self._trouble: str | None = None
        self._work: Work | None = None
        self._views: list[View] = []
        self._stored = 0

    def close(self) -> None:
        """Close the store."""
        if self._loaders is not None:
            self._loaders.close()

    def look(self, *, now: bool = False) -> None:
        """Report changes since the last read.

        Args:
            now: a write just happened: read files at once; runs, which may be incomplete, only at the first
                check.
        """
        try:
            self._look(now=now)
        except (TrecexamError, ConversionError) as error:
            self._fail(str(error))
        except OSError as error:
            # A file that went away while it was read: the next look sees it.
            self._fail(f"{error.filename or self._root}: {error.strerror or error}")
        except Exception as error:
            traceback.print_exc()
            self._fail(f"this should not happen, please report it: {type(error).__name__}: {error}")

    def call(self, request: Call) -> None:
        """Call a function with the last read track."""
        try:
            if self._track is None:
                raise TrecexamError(self._trouble or "the track is not read yet")
            value, failed = request.function(self._track[request.grader], *request.args), False
        except Exception as error:
            if not isinstance(error, TrecexamError | ConversionError):
                traceback.print_exc()
            value, failed = error, True
        try:
            answer = pickle.dumps(value, protocol=5)
        except Exception as error:
            answer, failed = pickle.dumps(TrecexamError(f"{type(value).__name__}: {error}")), True
        self._say(Returned(request.number, answer, failed))

    def _look(self, *, now: bool) -> None:
        loaders = self._opened()
        # The settings may have another first grader now, and it may be another one that can go on.
        loader = loaders.first if self._track is None else loaders[self._track.first.name]
        # Both before anything is read: what is written meanwhile is a change still to come.
        stamps = _stamps(loaders)
        changes = self._store_changes(loader)
        self._tell_work(loader)
        runs, first = loader.folder.runs, not self._views
        settled = [path for path in stamps if now and (first or not path.is_relative_to(runs))]
        waiting = self._settler.unsettled(stamps, settled, time.monotonic(), time.time())
        if self._views and any(not path.is_relative_to(runs) for path in waiting):
            return
        # A file that is being written changes at every look; what counts of it does not.
        counting = ((path, value) for path, value in stamps.items() if path not in waiting)
        seen = tuple(sorted(counting)), tuple(sorted(waiting))
        if seen == self._seen and changes == self._changes and self._trouble == "":
            return
        if seen == self._seen and not now and time.monotonic() < self._rest_until:
            # The store grows, or what went wrong is as it was.
            return
        began = time.monotonic()
        self._seen, self._changes = seen, changes
        track = self._loaded(loaders, waiting)
        loader = loaders[track.first.name]
        self._views = _views(track)
        self._track = track
        self._rest_until = time.monotonic() + REST * (time.monotonic() - began)
        self._stored = loader.track.store.count()
        # Before the state, so that no page shows that without how far its grading is.
        self._tell_work(loader)
        self._say(Loaded(pickle.dumps(self._views, protocol=5)))
        self._tell_trouble("")

    def _loaded(self, loaders: OpenTrack, waiting: Collection[Path]) -> LoadedTrack:
        """Return the current track, without those of its graders that cannot be loaded.

        Raises:
            TrecexamError, ConversionError: none can.
        """
        for name in loaders:
            with suppress(TrecexamError, ConversionError):
                loaders[name].forget_missing()
        track = loaders.load(tuple(waiting))
        if not track.graded_tracks:
            error, *other_errors = track.unable.values()
            had_bank = self._track is not None and len(self._track.first.bank) > 0
            if other_errors or had_bank:
                raise error
            # Whole passages can be judged without a bank.
            first = loaders.first
            track = loaders.load(updated={first.name: first.load(tuple(waiting), bank_needed=False)})
        fresh = {name: loaders[name].refreshed(each) for name, each in track.graded_tracks.items()}
        return replace(track, graded_tracks=fresh)

    def _opened(self) -> OpenTrack:
        """Return the loaders with the current settings.

        Raises:
            TrecexamError: they are wrong, or there is no track.
        """
        folder = TrackFolder.open(self._root)
        folders = {name: folder_of(folder, name) for name in grader_names(folder)}
        grader_files = [path for each in folders.values() for path in (each.prompt(), each.metric())]
        settings = stamp(folder.config_path), *(path and stamp(path) for path in grader_files)
        if self._loaders is None or settings != self._settings:
            self.close()
            self._loaders, self._settings = OpenTrack(folder), settings
            self._track = None
            self._settler = Settler(folder.config.watch.settle)
            self._seen = self._store = None
        return self._loaders

    def _store_changes(self, loader: GraderView) -> object:
        """Return a value that changes with every write to the store."""
        path = loader.folder.store_path
        current: Stamp | None = stamp(path)
        if (current and current.inode) != self._store:
            assert self._loaders is not None
            self._loaders.close()
            self._store = current and current.inode
        return self._store, loader.track.store.changes()

    def _tell_work(self, loader: GraderView) -> None:
        if not self._views:
            return
        missing = sum(view.counts.missing for view in self._views)
        gradable = sum(view.counts.cells - view.counts.no_text_cells for view in self._views)
        pid = holder(loader.folder.lock_path)
        done = gradable - missing
        if pid is not None and missing and self._store_changes(loader) != self._changes:
            done += max(0, loader.track.store.count() - self._stored)
        work = Work(min(done, gradable), gradable, pid)
        if work != self._work:
            self._work = work
            self._say(work)

    def _fail(self, reason: str) -> None:
        self._rest_until = time.monotonic() + RETRY
        self._tell_trouble(reason)

    def _tell_trouble(self, reason: str) -> None:
        if reason != self._trouble:
            self._trouble = reason
            self._say(Trouble(reason))


def _views(track: LoadedTrack) -> list[View]:
    """Return a view for each grader; the first has what is of all."""
    graders = () if track.is_single else (*track.graded_tracks, *track.unable)
    names = sorted(track.graded_tracks, key=lambda name: name != track.first.name)
    first, *other_views = (replace(view_of_track(track[name]), graders=graders) for name in names)
    if track.is_single:
        return [first]
    unable = {name: str(error) for name, error in track.unable.items()}
    return [replace(first, joint=track_leaderboard(track), unable=unable), *other_views]


def _stamps(loaders: OpenTrack) -> dict[Path, Stamp]:
    """Return the stamps of existing input files of all graders, even without a bank."""
    stamps: dict[Path, Stamp] = {}
    for name in loaders:
        with suppress(TrecexamError, ConversionError):
            stamps |= loaders[name].stamps(bank_files=())
            stamps |= loaders[name].stamps()
    return stamps


def work(root: Path, receive: Callable[[], Any], say: Callable[[Any], None]) -> None:
    """Check for changes every second, and answer calls, until `receive` raises an EOFError.

    Args:
        receive: waits for a request.
        say: receives changes and answers.
    """
    requests, lock = queue.SimpleQueue[int | None](), threading.Lock()

    def tell(message: Any) -> None:
        with lock, suppress(BrokenPipeError, ConnectionResetError):
            # The requester is gone.
            say(message)

    reader = Reader(root, tell)

    def follow() -> None:
        numbers: list[int | None] = [0]
        while None not in numbers:
            reader.look(now=bool(numbers))
            for number in filter(None, numbers):
                tell(Returned(number, b"", False))
            numbers = []
            with suppress(queue.Empty):
                numbers.append(requests.get(timeout=EVERY))
                # Requests that came meanwhile share a check.
                while True:
                    numbers.append(requests.get_nowait())
        reader.close()

    reading = threading.Thread(target=follow, name="reads the track")
    reading.start()
    try:
        while True:
            request = receive()
            if isinstance(request, Call):
                reader.call(request)
            else:
                requests.put(request.number)
    except EOFError:
        # The requester is gone.
        pass
    finally:
        requests.put(None)
        reading.join()
