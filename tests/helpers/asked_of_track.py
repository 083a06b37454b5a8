"""Functions that a test has the page's reader process import and run."""

from __future__ import annotations

from trecexam.errors import TrecexamError
from trecexam.line.assessment import Assessment


def counted(track: Assessment, query_id: str) -> int:
    """The number of passages of the query in the pool."""
    return len(track.sheets[query_id].doc_ids)


def refused(track: Assessment) -> None:
    raise TrecexamError("so it is", path="somewhere")
