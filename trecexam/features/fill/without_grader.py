"""Fills holes with labels that the track's own judgments teach."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trecexam.features.fill.arithmetic.merging import merge_labels
from trecexam.features.fill.filled import Filled, HolesToFill
from trecexam.features.fill.teaching import the_teacher
from trecexam.line.grading import Progress
from trecexam.tables.text import plural

if TYPE_CHECKING:
    from trecexam.line.assessment import Assessment


def merged_without_grader(
    track: Assessment, to_fill: HolesToFill, progress: Callable[[Progress], None] | None = None
) -> Filled:
    """Merges learned labels into the official judgments.

    Raises:
        TrecexamError: nothing can be learned here; the message says why.
    """
    official = to_fill.official
    encoded = None if progress is None else (lambda done, of: progress(Progress(done, of, what="texts")))
    taught = the_teacher().labels(track, official, encoded)
    rows = merge_labels(
        official.rows,
        to_fill.holes,
        taught.labels,
        taught.machine,
        people=official.people,
        as_unjudged=to_fill.request.as_unjudged,
    )
    new = sum(row.machine is not None for row in rows)
    rated = {(q, doc) for q, doc, _ in track.overrides.ratings if doc in to_fill.holes.get(q, ())}
    notes = (
        f"{plural(len(rated), 'hole')} that people rated in the grader's place: these ratings are on its "
        "scale, and count with --by grader only",
    )
    return Filled(
        to_fill,
        rows,
        taught.rule,
        0,
        new,
        to_fill.n_holes - new,
        0,
        0,
        (*taught.notes, *(notes if rated else ())),
    )
