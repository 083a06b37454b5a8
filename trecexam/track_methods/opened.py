"""A track that is open: its folder, and its line with what has been read so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trecexam.line.loaded import LoadedTrack
from trecexam.line.loader import TrackLoader
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    import ir_measures

    from trecexam.graders import Grader

    MeasureLike = str | ir_measures.Measure


class Opened:
    """What all methods of a track stand on."""

    def __init__(self, folder: TrackFolder, grader: Grader | None = None) -> None:
        self.folder = folder
        self._loader = TrackLoader(folder, grader)

    def close(self) -> None:
        """Closes the store; also done at the end of a `with` block."""
        self._loader.close()

    def _loaded(self) -> LoadedTrack:
        return self._loader.load()


def names_of(measures: Sequence[MeasureLike] | None) -> list[str] | None:
    return None if measures is None else [str(measure) for measure in measures]
