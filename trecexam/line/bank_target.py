"""Whether items can be written to a file of a track's bank."""

from __future__ import annotations

from pathlib import Path

from trecexam.errors import TrecexamError
from trecexam.track import TrackFolder


def check_target(folder: TrackFolder, target: Path) -> None:
    """Refuses a file that items cannot be written to.

    Raises:
        TrecexamError: it would not be one of the track's bank, or is compressed.
    """
    if not folder.takes_as_bank(target):
        patterns = folder.config.track.bank
        hint = (
            f"name it in `bank` of [track], which has {', '.join(patterns)}"
            if patterns
            else "give -o a name such as bank.mine.jsonl in the track's folder"
        )
        raise TrecexamError(f"would not be a file of this track's bank: {hint}", path=target)
    if target.suffix == ".gz":
        raise TrecexamError("is compressed, and could not be edited: give -o another name", path=target)
