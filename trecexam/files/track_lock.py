"""Locks that die with their process and name their holder; TrecexamError where one cannot be opened."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trecexam.errors import LockedError, TrecexamError


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Wait until nobody else writes; what two people say must not overwrite each other."""
    fd = open_lock_file(path, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def open_lock_file(path: Path, mode: int) -> int:
    """Open a lock's file, which is made where there is none; return the descriptor."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise TrecexamError("is a folder, a pipe or a device, not a file: remove it", path=path)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    except OSError as error:
        raise TrecexamError(
            f"cannot be opened: {error.strerror}; make the folder writable", path=path
        ) from None


@contextmanager
def track_lock(path: Path, doing: str = "grading this track") -> Iterator[None]:
    """Hold a track, for this process alone, for as long as the `with` block runs.

    It is an advisory lock of the kernel, so `kill -9` frees it too. The file stays and holds the pid.

    Args:
        doing: what the holder does, for the message.

    Raises:
        LockedError: another process holds it; the message has its pid.
    """
    fd = open_lock_file(path, 0o644)
    try:
        # `holder` takes the lock for an instant; that must not turn a writer away.
        for pause in (0.02, 0.1, 0.0):
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(pause)
        else:
            pid = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
            raise LockedError(f"process {pid} is already {doing}; stop it, or let it do the work", path=path)
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            raise TrecexamError(f"cannot be written: {error.strerror}", path=path) from None
        try:
            yield
        finally:
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def holder(path: Path) -> int | None:
    """Return the pid of the process that holds the lock now, or None."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.pread(fd, 32, 0).decode(errors="replace").strip()
        return int(text) if text.isdecimal() else None
    finally:
        os.close(fd)
    return None
