"""A lock for the moment in which a file of people's work is read, changed and written."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trecexam.files.lock_file import open_lock_file


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
