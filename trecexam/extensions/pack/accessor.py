"""`track.export.pack`: the track as one archive."""

from __future__ import annotations

from pathlib import Path

from trecexam.calls import Accessor
from trecexam.extensions.pack.packing import pack_track
from trecexam.tables.result import Tables


class PackCalls(Accessor):
    """More of `track.export`."""

    def pack(self, output: Path | str) -> Tables:
        """Write inputs, settings and grades to one .tar.gz; see `pack_track` of the extension."""
        return pack_track(self._loaders, Path(output))
