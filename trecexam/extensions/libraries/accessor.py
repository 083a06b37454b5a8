"""More of `track.export`: labels and grades as data frames, labels and runs for ranx."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.libraries import frames, ranx


@named_as_called
class LibraryCalls(Accessor):
    """Exports data frames and objects of ranx: `track.export.qrels_frame()`."""

    qrels_frame = on_loaded(frames.qrels_frame)
    grades_frame = on_loaded(frames.grades_frame)
    ranx_qrels = on_loaded(ranx.ranx_qrels)
    ranx_runs = on_loaded(ranx.ranx_runs)
