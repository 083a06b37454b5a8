"""The file that a lock of the kernel is on."""

from __future__ import annotations

import os
from pathlib import Path

from trecexam.errors import TrecexamError


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
