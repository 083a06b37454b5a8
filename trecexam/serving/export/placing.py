"""Where a copy is put: made beside its folder, and put in place as a whole."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.files.kept import read_object

#: In each copy, so that nothing else is ever replaced by one.
MARKER = "trecexam-copy.json"
#: In a copy that is being made, so that nothing else is ever removed for one.
IN_WORK = ".trecexam-copy-in-work"
_OLD = "-old"


def refuse_others(folder: Path) -> None:
    """To be called before a copy is made.

    Raises:
        TrecexamError: the folder is none, or has something else in it than an earlier copy.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise TrecexamError("is no folder: name another for the copy", path=folder)
    if folder.is_dir() and any(folder.iterdir()) and not _is_copy(folder):
        raise TrecexamError("has files that are no copy of a page: name another folder", path=folder)


@contextmanager
def new_copy(folder: Path) -> Iterator[Path]:
    """A folder to make a copy in; at the end of the block it takes the place of `folder`, unless it raises.

    What an earlier process left when it was killed is mended first: its unfinished copy goes, and an earlier
    copy that it had just moved out of the way comes back.

    Raises:
        OSError: it cannot be made, or put in place; an earlier copy is where it was.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _mend(folder)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    lock = os.open(made, os.O_RDONLY)
    try:
        # Others leave it alone as long as this process lives.
        fcntl.flock(lock, fcntl.LOCK_EX)
        (made / IN_WORK).touch()
        made.chmod(0o755)
        yield made
        (made / IN_WORK).unlink()
        _put(made, folder)
    finally:
        os.close(lock)
        shutil.rmtree(made, ignore_errors=True)


def _mend(folder: Path) -> None:
    name = re.compile(rf"\.{re.escape(folder.name)}-[a-z0-9_]{{8}}({_OLD})?")
    for left in sorted(folder.parent.iterdir()):
        match = name.fullmatch(left.name)
        if match is None or left.is_symlink() or not left.is_dir():
            continue
        if not (_is_copy(left) or (left / IN_WORK).is_file()) or _is_locked(left):
            continue
        if match[1] and not folder.exists():
            left.rename(folder)
        else:
            shutil.rmtree(left, ignore_errors=True)


def _is_locked(folder: Path) -> bool:
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False


def _is_copy(folder: Path) -> bool:
    return read_object(folder / MARKER).keys() == {"track", "blind", "files"}


def _put(made: Path, folder: Path) -> None:
    """Puts a finished folder in the place of an earlier one."""
    old = made.with_name(made.name + _OLD)
    if folder.exists():
        folder.rename(old)
    try:
        made.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
