"""More of `track.export`: labels and grades as data frames."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.libraries import frames


@named_as_called
class LibraryCalls(Accessor):
    """Exports data frames: `track.export.qrels_frame()`."""

    qrels_frame = on_loaded(frames.qrels_frame)
    grades_frame = on_loaded(frames.grades_frame)
