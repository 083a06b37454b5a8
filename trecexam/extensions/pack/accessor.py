"""`track.pack`: the track as one file."""

from __future__ import annotations

from pathlib import Path

from trecexam.calls import Accessor
from trecexam.extensions.pack.packing import pack_track
from trecexam.tables.result import Tables


class PackAccessor(Accessor):
    """Packs the track into one reproducible file: `track.pack("paper.trecexam")`."""

    def __call__(self, output: Path | str, *, texts: bool = False) -> Tables:
        """As `trecexam.extensions.pack.packing.pack_track`, of this track with all its graders."""
        return pack_track(self._loaders, output, texts=texts)
