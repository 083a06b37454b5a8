"""The pace of graders that are paid: of each its last grading, which says how long the next one would take.

Such a grader cannot be tried out, as that costs; the file may be lost, and is then made by the next grading.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trecexam.errors import TrecexamError
from trecexam.files.kept import recall, remember
from trecexam.graders.base import Estimate, identity_digest
from trecexam.graders.sampling import MeasuredTime

#: Of less than this nothing follows: the first requests come slowly.
FEWEST_REQUESTS, SHORTEST = 20, 2.0
#: So many graders' paces are kept, those that graded last.
MOST_GRADERS = 8


def remember_pace(
    path: Path, identity: Mapping[str, Any], *, requests: int, cells: int, seconds: float
) -> None:
    """Keeps a grading's pace where it was long enough; one that cannot be written is not kept."""
    if requests < FEWEST_REQUESTS or seconds < SHORTEST or not cells:
        return
    day = datetime.now(UTC).date().isoformat()
    pace = {"requests": requests, "cells": cells, "seconds": round(seconds, 3), "day": day}
    digest = identity_digest(identity).hex()
    # The order is that of the gradings.
    other_paces = [(key, value) for key, value in recall(path).items() if key != digest]
    paces = [*other_paces, (digest, pace)][-MOST_GRADERS:]
    # What was graded is stored; only a later estimate has no minutes.
    with suppress(TrecexamError):
        remember(path, dict(paces))


def paced_time(path: Path, identity: Mapping[str, Any], estimate: Estimate) -> MeasuredTime | None:
    """How long grading takes at the pace kept of this grader; None where none is, or nothing is to be graded.

    Goes by requests where the estimate counts them (`calls`), else by cells.
    """
    pace = recall(path).get(identity_digest(identity).hex())
    if pace is None or not estimate.cells:
        return None
    requests, cells, seconds = pace["requests"], pace["cells"], pace["seconds"]
    share = estimate.cells / cells if estimate.calls is None else estimate.calls / requests
    return MeasuredTime(share * seconds, 0.0, cells, 0, seconds, requests, pace["day"])
