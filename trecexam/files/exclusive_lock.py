"""A lock for the moment in which a file of people's work is read, changed and written."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trecexam.errors import TrecexamError


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Waits until nobody else writes; what two people say must not overwrite each other.

    Args:
        path: of the lock.

    Raises:
        TrecexamError: it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise TrecexamError(
            f"cannot be opened: {error.strerror}; make the folder writable", path=path
        ) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
