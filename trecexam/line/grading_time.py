"""How long grading would take: extrapolated from a sample that is graded, and stored nowhere."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import NamedTuple

from trecexam.graders import Grader
from trecexam.graders.base import Cell
from trecexam.graders.registry import BUILT_IN
from trecexam.graders.traits import traits_of
from trecexam.line.grading import missing_cells
from trecexam.line.loader import TrackLoader

#: Passages of each part of the sample. The first has the model loaded; the last that is graded gives the
#: pace, as it fills batches best.
_PASSAGES = (1, 4, 16, 64)
#: Seconds of grading after which no further part is begun.
_ENOUGH = 3.0


class GradingTime(NamedTuple):
    """What was measured, and what follows from it.

    Attributes:
        seconds: for all cells without a grade, the start included.
        start: seconds until the first passage was graded: the model is loaded, mostly.
        cells, passages: of the part of the sample that gives the pace.
        pace: seconds that part took.
    """

    seconds: float
    start: float
    cells: int
    passages: int
    pace: float


def measure_time(loader: TrackLoader) -> GradingTime | None:
    """Grades up to 85 passages as they come, and extrapolates; None where that could cost or runs elsewhere.

    Only graders that come with trecexam, count no tokens and run in this process are asked.

    Raises:
        TrecexamError, ConversionError: the track cannot be read, or the grader cannot run.
    """
    settings, track = loader.config, loader.load()
    elsewhere = settings.ray.address is not None
    if not loader.track_grader.is_own or settings.grader.name not in BUILT_IN or elsewhere:
        return None
    if traits_of(loader.grader).meter is not None or not track.counts.missing:
        return None
    passages = itertools.groupby(missing_cells(track), lambda cell: (cell.query_id, cell.text))
    return _measured(loader.grader, (list(cells) for _, cells in passages), track.counts.missing)


def _measured(grader: Grader, passages: Iterable[list[Cell]], cells: int) -> GradingTime:
    """The time of grading so many cells.

    Args:
        passages: the cells of each, at least one.
    """
    sample = iter(passages)
    begun = time.monotonic()
    start = pace = 0.0
    graded = of_passages = 0
    for most in _PASSAGES:
        part = list(itertools.islice(sample, most))
        if not part or (start and time.monotonic() - begun - start > _ENOUGH):
            break
        asked = list(itertools.chain.from_iterable(part))
        before = time.monotonic()
        for _ in grader.grade(asked):
            pass
        pace, graded, of_passages = time.monotonic() - before, len(asked), len(part)
        start = start or pace
    return GradingTime(start + cells * pace / graded, start, graded, of_passages, pace)
