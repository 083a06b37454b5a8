"""A lock for the moment in which a file of people's work is read, changed and written; files of locks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trecexam.errors import TrecexamError


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Waits until nobody else writes; what two people say must not overwrite each other.

    Args:
        path: of the lock.

    Raises:
        TrecexamError: it cannot be made.
    """
    fd = open_lock_file(path, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def open_lock_file(path: Path, mode: int) -> int:
    """The descriptor of a lock's file, which is made where there is none.

    Args:
        mode: who may open it, where it is made.

    Raises:
        TrecexamError: it can be neither made nor opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise TrecexamError("is no file: a folder, a pipe or a device; remove it", path=path)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    except OSError as error:
        raise TrecexamError(
            f"cannot be opened: {error.strerror}; make the folder writable", path=path
        ) from None
