"""The file of guidelines that `guidelines` in [judging] names."""

from __future__ import annotations

from trecexam.errors import TrecexamError
from trecexam.folder import TrackFolder


def guidelines_text(folder: TrackFolder) -> str:
    """Return the track's guidelines, Markdown; "" without the setting.

    Raises:
        TrecexamError: the file does not exist or cannot be read; names the file and the setting.
    """
    name = folder.config.judging.guidelines
    if name is None:
        return ""
    path = folder.root / name
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise TrecexamError(f"{path}, named by `guidelines` in [judging], {why}") from None


def guidelines_warning(folder: TrackFolder) -> str:
    """Return why assessors see no guidelines although the setting names a file; "" if they see them."""
    try:
        guidelines_text(folder)
    except TrecexamError as error:
        return f"{error}; assessors see no guidelines"
    return ""
