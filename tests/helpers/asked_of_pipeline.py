"""What a test has the page's reader do, in its own process: functions that it can import."""

from __future__ import annotations

from trecexam.errors import TrecexamError
from trecexam.pipeline import Pipeline


def counted(pipeline: Pipeline, query_id: str) -> int:
    """How many passages the query has in the pool."""
    return len(pipeline.gradebook.pooled(query_id))


def refused(pipeline: Pipeline) -> None:
    raise TrecexamError("so it is", path="somewhere")
