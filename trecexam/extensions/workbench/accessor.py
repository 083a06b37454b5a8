"""More of `track.export`: the pool in the Rubric workbench's records."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_loaded
from trecexam.extensions.workbench.pool import pooled_passages


@named_as_called
class PoolCalls(Accessor):
    """The track's pool in the workbench's records: `track.export.pool()`."""

    pool = on_loaded(pooled_passages)
