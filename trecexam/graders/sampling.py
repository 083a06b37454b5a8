"""How long work would take: extrapolated from a sample of it that is done, and kept nowhere."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")
#: Passages, or prompts, of each part of the sample. The first has the model loaded; the last that is done
#: gives the pace, as it fills batches best.
_PARTS = (1, 4, 16, 64)
#: Seconds of work after which no further part is begun.
_ENOUGH = 3.0


class MeasuredTime(NamedTuple):
    """How long work would take, and what that follows from: a sample of it.

    Attributes:
        seconds: for all of the work, the start included.
        start: seconds until the first passage was graded, or prompt answered: the model is loaded, mostly.
        cells, passages: of the part of the sample that gives the pace; both are its prompts, where no cells
            are graded.
        pace: seconds that part took.
    """

    seconds: float
    start: float
    cells: int
    passages: int
    pace: float


def measured(
    work: Callable[[Sequence[T]], object],
    sample: Iterable[T],
    total: int,
    cells: Callable[[T], int] = lambda _: 1,
) -> MeasuredTime:
    """The time of work on `total` cells.

    Args:
        work: does it.
        sample: what to try it on; only the first 85 are looked at, and there is one at least.
        cells: how many cells one of these is.
    """
    rest = iter(sample)
    begun = time.monotonic()
    parts: list[tuple[list[T], float]] = []
    for most in _PARTS:
        part = list(itertools.islice(rest, most))
        if not part or (parts and time.monotonic() - begun - parts[0][1] > _ENOUGH):
            break
        before = time.monotonic()
        work(part)
        parts.append((part, time.monotonic() - before))
    start, (last, pace) = parts[0][1], parts[-1]
    n_cells = sum(map(cells, last))
    # A single part has the start in its pace.
    seconds = total * pace / n_cells + (start if len(parts) > 1 else 0.0)
    return MeasuredTime(seconds, start, n_cells, len(last), pace)
