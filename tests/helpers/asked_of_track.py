"""Functions that a test has the page's reader process import and run."""

from __future__ import annotations

from trecexam.errors import TrecexamError
from trecexam.grades.graded_track import GradedTrack


def counted(track: GradedTrack, query_id: str) -> int:
    """The number of passages of the query in the pool."""
    return len(track.sheets[query_id].doc_ids)


def refused(track: GradedTrack) -> None:
    raise TrecexamError("so it is", path="somewhere")
