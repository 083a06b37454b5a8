"""More of `track.export` and `track.verify`: a pool as the Rubric workbench has it, and its readings."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.workbench.pool import pooled_passages
from trecexam.extensions.workbench.readings import difference


@named_as_called
class PoolCalls(Accessor):
    """The track's pool in the workbench's records: `track.export.pool()`."""

    pool = on_loaded(pooled_passages)


@named_as_called
class ReadingCalls(Accessor):
    """How much it matters which way answers are read: `track.verify.readings()`."""

    readings = on_loaded(difference)
