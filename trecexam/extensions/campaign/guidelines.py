"""The file of guidelines that `guidelines` in [judging] names."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.files.stamps import Stamp, stamp
from trecexam.folder import TrackFolder

_SETTING = "named by `guidelines` in [judging]"


def guidelines_text(folder: TrackFolder) -> str:
    """The text of the track's guidelines, Markdown; "" without the setting.

    Raises:
        TrecexamError: the file does not exist or cannot be read; names the file and the setting.
    """
    name = folder.config.judging.guidelines
    if name is None:
        return ""
    path = folder.root / name
    current = stamp(path)
    if current is None:
        raise TrecexamError(f"{path}, {_SETTING}, does not exist")
    return _read(path, current)


def guidelines_warning(folder: TrackFolder) -> str:
    """Why assessors see no guidelines although the setting names a file; "" if they see them."""
    try:
        guidelines_text(folder)
    except TrecexamError as error:
        return f"{error}; assessors see no guidelines"
    return ""


@lru_cache(maxsize=8)
def _read(path: Path, current: Stamp) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TrecexamError(f"{path}, {_SETTING}, cannot be read: {error}") from None
