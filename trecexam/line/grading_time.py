"""How long grading would take: extrapolated from a sample that is graded, and stored nowhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from trecexam.graders.base import Cell, Grader
from trecexam.graders.kept_vectors import no_kept_vectors
from trecexam.graders.registry import is_standard
from trecexam.graders.sampling import MeasuredTime, measured
from trecexam.graders.written import WritingGrader
from trecexam.line.assessment import Assessment
from trecexam.line.grading import missing_cells
from trecexam.line.loader import TrackLoader


def measure_time(loader: TrackLoader, track: Assessment | None = None) -> MeasuredTime | None:
    """Grades up to 85 passages as they come, and extrapolates; None where that could cost or runs elsewhere.

    Only graders that come with trecexam, count no tokens and run in this process are timed.

    Args:
        track: what the loader loaded; None to load it.

    Raises:
        TrecexamError, ConversionError: the track cannot be read, or the grader cannot run.
    """
    track = track or loader.load()
    if not _runs_here(loader):
        return None
    return _measured_grading(loader.grader, missing_cells(track), track.counts.missing)


def _measured_grading(grader: Grader, missing: Iterable[Cell], total: int) -> MeasuredTime | None:
    if grader.meter is not None or not total:
        return None

    def grade(passages: Sequence[list[Cell]]) -> None:
        with no_kept_vectors():
            for _ in grader.grade(list(itertools.chain.from_iterable(passages))):
                pass

    groups = itertools.groupby(missing, lambda cell: (cell.query_id, cell.text))
    return measured(grade, (list(cells) for _, cells in groups), total, len)


def _runs_here(loader: TrackLoader) -> bool:
    """Whether its grader comes with trecexam, and works in this process."""
    if isinstance(loader.grader, WritingGrader):
        return loader.grader.writer.is_here
    settings = loader.config
    is_builtin = loader.is_own and is_standard(settings.grader.name)
    return is_builtin and settings.ray.address is None
