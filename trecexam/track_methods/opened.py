"""A track that is open: its folder, and its line with what has been read so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trecexam.pipeline import Pipeline
from trecexam.track import TrackFolder

if TYPE_CHECKING:
    import ir_measures

    from trecexam.graders import Grader

    MeasureLike = str | ir_measures.Measure


class Opened:
    """What all methods of a track stand on."""

    def __init__(self, folder: TrackFolder, grader: Grader | None = None) -> None:
        self.folder = folder
        self._pipeline = Pipeline(folder, grader)

    def close(self) -> None:
        """Closes the store; also done at the end of a `with` block."""
        self._pipeline.close()

    def _loaded(self) -> Pipeline:
        self._pipeline.load()
        return self._pipeline


def names_of(measures: Sequence[MeasureLike] | None) -> list[str] | None:
    return None if measures is None else [str(measure) for measure in measures]
