"""Time that grading would take: extrapolated from a sample that is graded, and stored nowhere."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from trecexam.graders import is_standard
from trecexam.graders.base import Cell
from trecexam.graders.embedding import no_kept_vectors
from trecexam.graders.meter import MeasuredTime, measured
from trecexam.graders.writing.base import WritingGrader
from trecexam.grades.graded_track import GradedTrack
from trecexam.grades.grading import missing_cells
from trecexam.grades.open_track import GraderView


def measure_time(loader: GraderView, track: GradedTrack | None = None) -> MeasuredTime | None:
    """Grade up to 85 passages as they come, and extrapolate; None where that could cost or runs elsewhere.

    Only graders that come with trecexam, count no tokens and run in this process are timed.

    Args:
        track: what the loader loaded; None to load it.

    Raises:
        TrecexamError, ConversionError: the track cannot be read, or the grader cannot run.
    """
    track, grader = track or loader.load(), loader.grader
    if isinstance(grader, WritingGrader):
        is_here = grader.writer.is_here
    else:
        is_builtin = loader.is_own and is_standard(loader.config.grader.name)
        is_here = is_builtin and loader.config.cluster is None
    total = track.counts.missing
    if not is_here or grader.meter is not None or not total:
        return None

    def grade(passages: Sequence[list[Cell]]) -> None:
        with no_kept_vectors():
            for _ in grader.grade(list(itertools.chain.from_iterable(passages))):
                pass

    groups = itertools.groupby(missing_cells(track), lambda cell: (cell.query_id, cell.text))
    return measured(grade, (list(cells) for _, cells in groups), total, len)
