"""Replaces a copy atomically: writes it next to its folder, then moves it."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.files.kept import read_object
from trecexam.tables.text import shorten_list

#: In each copy, with the sha256 of each of its files, so that only copies are removed for a new one.
MARKER = "trecexam-copy.json"
#: In a copy that is being made, so that only copies are removed for one.
IN_WORK = ".trecexam-copy-in-work"
_OLD = "-old"


def write_marker(folder: Path, digests: Mapping[str, str], **facts: Any) -> None:
    """Writes the list of a copy's files."""
    marker = {**facts, "files": dict(digests)}
    (folder / MARKER).write_text(json.dumps(marker, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def refuse_others(folder: Path) -> None:
    """Raises an error if the folder has other files than an earlier copy.

    Raises:
        TrecexamError: it is not a folder, or has other files than those of an earlier copy.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise TrecexamError("is not a folder: give another one for the copy", path=folder)
    try:
        if not folder.is_dir() or not any(folder.iterdir()):
            return
        listed = _listed(folder)
        if listed is None:
            raise TrecexamError(
                "has files that do not belong to a copy of a page: give another folder", path=folder
            )
        foreign = sorted(name for name, is_ours in _inside(folder, listed) if not is_ours)
    except OSError as error:
        raise TrecexamError(f"cannot be read: {error.strerror or error}", path=folder) from error
    if foreign:
        raise TrecexamError(
            f"has files that the earlier copy did not write, or that changed since: "
            f"{shorten_list(foreign, quote='')}. Nothing was removed. Move them away, or give another folder",
            path=folder,
        )


@contextmanager
def new_copy(folder: Path) -> Iterator[Path]:
    """A folder for a new copy, which replaces `folder` at the end of the block, unless it raises.

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
        unfinished = (left / IN_WORK).is_file()
        if not (unfinished or _listed(left) is not None) or _is_locked(left):
            continue
        if match[1] and not folder.exists():
            left.rename(folder)
        elif unfinished:
            shutil.rmtree(left, ignore_errors=True)
        else:
            _remove(left)


def _is_locked(folder: Path) -> bool:
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False


def _listed(folder: Path) -> Mapping[str, str] | None:
    """Path -> sha256 of a copy's files; None if the folder is not a copy."""
    marker = read_object(folder / MARKER)
    is_copy = marker.keys() == {"track", "blind", "files"}
    return marker["files"] if is_copy and isinstance(marker["files"], dict) else None


def _inside(folder: Path, listed: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """The entries of a folder, and whether an earlier copy wrote each."""
    ours = {str(parent) for name in listed for parent in PurePosixPath(name).parents}
    waiting = [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            name, mode = path.relative_to(folder).as_posix(), path.lstat().st_mode
            if stat.S_ISDIR(mode) and name in ours:
                waiting.append(path)
            elif stat.S_ISDIR(mode):
                yield f"{name}/", False
            else:
                is_ours = name == MARKER or (name in listed and _digest(path, mode) == listed[name])
                yield name, is_ours and stat.S_ISREG(mode)


def _digest(path: Path, mode: int) -> str:
    if not stat.S_ISREG(mode):
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(copy: Path) -> None:
    """Removes a copy, and nothing that it did not write; its list goes last, so that the next one
    continues.
    """
    with suppress(OSError):
        for name, is_ours in list(_inside(copy, _listed(copy) or {})):
            if is_ours and name != MARKER:
                (copy / name).unlink()
        for folder, _, _ in os.walk(copy, topdown=False):
            if folder != str(copy):
                Path(folder).rmdir()
        (copy / MARKER).unlink(missing_ok=True)
        copy.rmdir()


def _put(made: Path, folder: Path) -> None:
    """Replaces an earlier folder by a finished one."""
    # Again: to make a copy takes its time.
    refuse_others(folder)
    old = made.with_name(made.name + _OLD)
    if folder.exists():
        folder.rename(old)
    try:
        made.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
    _remove(old)
