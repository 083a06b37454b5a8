"""The file of a track's bank that items are written to, which people may edit meanwhile."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from converters.lines import open_input
from trecexam.errors import TrecexamError
from trecexam.folder import TrackFolder


def read_target(folder: TrackFolder, target: Path) -> bytes:
    """Read the file, b"" where there is none. Read it before the bank, for `check_unchanged`.

    Raises:
        TrecexamError: it would not be one of the track's bank, or is compressed.
    """
    if not folder.takes_as_bank(target):
        patterns = folder.config.track.bank
        hint = (
            f"name it in `bank` of [{folder.section_of('bank', 'track')}], which has {', '.join(patterns)}"
            if patterns
            else "give -o a name such as bank.mine.jsonl in the track's folder"
        )
        raise TrecexamError(f"would not be a file of this track's bank: {hint}", path=target)
    if target.suffix == ".gz":
        raise TrecexamError("is compressed, and could not be edited: give -o another name", path=target)
    with suppress(OSError), open_input(target) as file:
        return file.read()
    return b""


def lines_of(content: bytes) -> list[bytes]:
    """Split a file into lines, with their ends."""
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


def check_unchanged(target: Path, content: bytes) -> None:
    """Refuse to write to a file that changed since `read_target` gave this content.

    Raises:
        TrecexamError: somebody else changed it meanwhile.
    """
    if (target.read_bytes() if target.exists() else b"") != content:
        raise TrecexamError(
            "was edited while the model was asked, and is left unchanged; start again: the answers are kept "
            "and each prompt is sent once",
            path=target,
        )
