"""Output files: each is either the old one or the new one, never half of one; and lines that are added.

Each function raises TrecexamError where a file cannot be written (full disk, no permission) or removed; what
was there is as it was, but where of several files one was renamed before another could not be.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from trecexam.errors import TrecexamError

#: Bytes of a file that are compared at a time.
_BLOCK = 2**20


def make_folder(folder: Path) -> None:
    """Make a folder, and those it is in; one that is there is fine."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrecexamError(f"no folder can be made here: {error.strerror}", path=folder) from None


def replace(path: Path, content: bytes, *, mode: int = 0o666, into_special: bool = True) -> bool:
    """Write a file by renaming a finished one into its place; return False where it has this content.

    Args:
        mode: who may open a new file, less the process's mask; an old file keeps its mode.
        into_special: write into a device or a pipe, as /dev/stdout; False replaces it, or an empty folder.
    """
    return bool(replace_together({path: content}, mode=mode, into_special=into_special))


def replace_together(
    contents: Mapping[Path, bytes], *, mode: int = 0o666, into_special: bool = True
) -> list[Path]:
    """Write files as `replace`, none into its place before all are finished; return those that changed."""
    finished: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in contents.items():
            is_special = path.parent == Path("/dev") or not (path.is_file() or path.is_dir())
            if into_special and is_special and path.exists():
                # A device or a pipe, as /dev/stdout, is written to, and never replaced.
                path.write_bytes(content)
                continue
            if path.is_file() and path.stat().st_size == len(content) and _has(path, content):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            finished[path] = temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if path.is_file():
                # Who may read a bank or ratings stays as somebody set it.
                shutil.copymode(path, temporary)
        for path, temporary in finished.items():
            if not into_special and path.is_dir():
                with contextlib.suppress(OSError):
                    # Only where nothing is in it.
                    path.rmdir()
            temporary.replace(path)
    except OSError as error:
        raise TrecexamError(
            f"cannot be written: {error.strerror}; the old file is as it was", path=path
        ) from None
    finally:
        for temporary in finished.values():
            with contextlib.suppress(OSError):
                temporary.unlink()
    return list(finished)


def _has(path: Path, content: bytes) -> bool:
    """Return True where a file of the same size has this content; read it in blocks, as it may be large."""
    starts = range(0, len(content), _BLOCK)
    with path.open("rb") as file:
        return all(file.read(_BLOCK) == content[start : start + _BLOCK] for start in starts)


def append(path: Path, content: bytes) -> None:
    """Add to the end of a file that is there; a link stays a link."""
    try:
        with path.open("ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            try:
                written = file.write(content)
                if written != len(content):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
            except OSError:
                file.truncate(size)
                raise
    except OSError as error:
        raise TrecexamError(
            f"cannot be written: {error.strerror}; the old file is as it was", path=path
        ) from None


def remove(path: Path) -> None:
    """Remove an output that no longer applies."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise TrecexamError(f"cannot be removed: {error.strerror}; move it away", path=path) from None


def replace_all(folder: Path, contents: Mapping[str, bytes], ours: Iterable[str]) -> None:
    """Write files into a folder, all or none, and remove earlier ones that are not among them.

    Args:
        contents: by their names below the folder.
        ours: patterns of names that may be there from an earlier time; other files are left alone.
    """
    replace_together({folder / name: content for name, content in contents.items()})
    new_paths = {folder / name for name in contents}
    stale = [path for pattern in ours for path in folder.glob(pattern) if path not in new_paths]
    for path in stale:
        remove(path)
    # The deepest first; what has other files in it stays.
    for directory in sorted({each for path in stale for each in path.parents}, reverse=True):
        if directory.is_relative_to(folder) and directory != folder:
            with contextlib.suppress(OSError):
                directory.rmdir()


def sweep(folder: Path) -> None:
    """Remove what a killed writer left behind."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            path.unlink()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
