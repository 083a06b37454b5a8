"""Hints from the operating system that something in a track folder changed. A scan decides what."""

from __future__ import annotations

import platform
import queue
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchdog.observers.api import BaseObserver


class Wake:
    """An event for signal handlers: `threading.Event.set` deadlocks if it interrupts `wait` or `clear`."""

    def __init__(self) -> None:
        # Its `put` may interrupt its `get`, says the standard library.
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        """Wake the waiting thread, or the next one that waits."""
        self._calls.put(None)

    def clear(self) -> None:
        """Forget earlier calls of `set`."""
        while not self._calls.empty():
            self._calls.get()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until `set` is called, so many seconds at most."""
        try:
            self._calls.get(timeout=None if seconds is None else max(0.0, seconds))
        except queue.Empty:
            return


#: File systems on which inotify sees only this machine's own changes.
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs"}
    | {"beegfs", "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "virtiofs"}
    | {"vboxsf", "drvfs"}
)


class Hints:
    """Collects paths that were closed or moved in, and wakes whoever waits. Safe between threads."""

    def __init__(self, wake: Wake | threading.Event) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._paths: set[Path] = set()

    def add(self, path: Path | None = None) -> None:
        """Something happened; `path`, if given, is complete now."""
        with self._lock:
            if path is not None:
                self._paths.add(path)
        self._wake.set()

    def take(self) -> frozenset[Path]:
        """Return the paths collected since the last call."""
        with self._lock:
            paths, self._paths = frozenset(self._paths), set()
        return paths


@contextmanager
def watching(root: Path, runs: Path, hints: Hints, log: Callable[[str], None]) -> Iterator[bool]:
    """Feeds `hints` from the operating system while the block runs.

    Returns:
        Whether it does; where it cannot (a network file system, no inotify watches left), the reason is
        logged and looking at the folder every `poll` seconds has to do.
    """
    kind = file_system(runs)
    if kind in NETWORK_FILE_SYSTEMS:
        log(f"{runs} is on {kind}: looking at it every few seconds instead of being told")
        yield False
        return
    # watchdog 7 warns, in its own thread, when a folder shows up while it adds the folder's parent.
    warnings.filterwarnings("ignore", "Callback with id .* already exists", RuntimeWarning)
    observer = _observer()
    handler = _handler(hints, ignored={root / "out", root / ".trecexam"})
    try:
        observer.schedule(handler, str(root), recursive=False)
        if runs.is_dir():
            observer.schedule(handler, str(runs), recursive=True)
        observer.start()
    except OSError as error:
        log(f"the system gives no file events ({error.strerror or error}): looking every few seconds instead")
        yield False
        return
    try:
        yield True
    finally:
        observer.stop()
        observer.join()


def file_system(path: Path, mounts: str | None = None) -> str:
    """Return the type of the file system that holds `path` ("" where the system does not say).

    Args:
        mounts: the text of /proc/self/mounts, for tests.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    resolved = path.resolve()
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " "))
        if resolved.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind


def _observer() -> BaseObserver:
    """Return the observer of file events; with inotify, moved files differ from those being written."""
    if platform.system() == "Linux":
        from watchdog.observers.inotify import InotifyObserver

        return InotifyObserver(generate_full_events=True)
    from watchdog.observers import Observer

    return Observer()


def _handler(hints: Hints, ignored: set[Path]):  # type: ignore[no-untyped-def]
    from watchdog.events import FileSystemEvent, FileSystemEventHandler

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            # "opened" and "closed_no_write" are what our own reading causes.
            if event.event_type not in {"created", "modified", "moved", "deleted", "closed"}:
                return
            path = Path(str(event.src_path))
            if path in ignored or (event.is_directory and event.event_type == "modified"):
                return
            if event.event_type == "closed":
                hints.add(path)
            elif event.event_type == "moved" and event.dest_path:
                # Also what was moved in from outside, which has no earlier path.
                hints.add(Path(str(event.dest_path)))
            else:
                hints.add()

    return Handler()
