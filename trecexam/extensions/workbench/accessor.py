"""Calls for the Rubric workbench: the pool, readings of answers, and the row over all runs."""

from __future__ import annotations

from trecexam.calls import Accessor, named_as_called, on_graded, on_loaded
from trecexam.extensions.workbench.overall import overall_leaderboard
from trecexam.extensions.workbench.pool import pooled_passages
from trecexam.extensions.workbench.readings import difference


@named_as_called
class OverallAccessor(Accessor):
    """The leaderboard with a row for all runs together: `track.overall()`."""

    __call__ = on_graded(overall_leaderboard)


@named_as_called
class PoolCalls(Accessor):
    """The track's pool in the workbench's records: `track.export.pool()`."""

    pool = on_loaded(pooled_passages)


@named_as_called
class ReadingCalls(Accessor):
    """The effect of how answers are read: `track.verify.readings()`."""

    readings = on_loaded(difference)
