"""Facts about input files: when one changed, what it looks like, why it was rejected."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import converters
from converters.errors import ConversionError, Lost, escaped
from converters.lines import open_input


class Stamp(NamedTuple):
    """Facts that tell a changed file from an unchanged one without reading it.

    Times of content can be set back, as copying does (`cp -p`, `rsync -t`); `ctime_ns` cannot.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Rejected(NamedTuple):
    """An input, or a part of one, that was rejected. `line` is None where no line of the file is meant.

    `lost` is how much of the file does not count: see `converters.errors.Lost`.
    """

    file: str
    line: int | None
    reason: str
    lost: Lost

    def __str__(self) -> str:
        return f"{located(self.file, self.line, self.reason)} (lost: {self.lost})"


def located(file: str, line: int | None, reason: str) -> str:
    """Return FILE:LINE: REASON, on one line."""
    where = file if line is None else f"{file}:{line}"
    return escaped(f"{where}: {reason}").replace("\n", "\\n")


def stamp(path: Path) -> Stamp | None:
    """Return the stamp of a file, or None where there is none; of a link to nothing, its own."""
    for look in (path.stat, path.lstat):
        with suppress(OSError):
            status = look()
            return Stamp(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return None


def dangling_link(path: Path) -> str:
    """Describe a link to a file that is not there; "" for all else."""
    if not path.is_symlink() or path.exists():
        return ""
    return f"is a link to a file that is not there: {path.readlink()}"


def sniffed(path: Path) -> str | None:
    """Return the format, or None: then reading the file as what it should be names the line."""
    with suppress(ConversionError):
        return converters.sniff(path)
    return None


def fingerprint(stamps: Mapping[Path, Stamp]) -> list[list[Any]]:
    """Return stamps as sorted, JSON-ready rows: equal exactly when no input changed."""
    return sorted([os.fspath(path), *value] for path, value in stamps.items())


def sha256_of(path: Path) -> str:
    """Return the sha256 (hex) of a file's content."""
    with open_input(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
